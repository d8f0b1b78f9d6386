use std::net::TcpListener;

use super::ServerError;

/// Below the range from which systems choose ports for outgoing connections. Inside of it another program could take the
/// port while our server is stopped, and a client that tries the port of a stopped server could connect to itself.
const RANGE: std::ops::Range<u16> = 15_000..30_000;

/// A port of the loopback address that is free now. Another process may take it first: the start must be tried again.
pub(super) fn free() -> Result<u16, ServerError> {
    let mut last = None;
    for _ in 0..100 {
        let port = rand::random_range(RANGE);
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    Err(ServerError::io("find a free port")(last.expect("there was an attempt")))
}

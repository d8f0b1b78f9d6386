//! A relay before the server: to lose a reply, or to be reached on another address.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};

/// Passes everything on until it is told to lose the next reply.
pub(crate) struct Relay {
    pub(crate) url: String,
    loses: Arc<AtomicBool>,
}

impl Relay {
    /// Before the server of a URL, on an address of ours.
    pub(crate) async fn before(url: &str, address: &str) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let loses = Arc::new(AtomicBool::new(false));
        let url_here = elsewhere(url, &listener.local_addr().unwrap().to_string());
        tokio::spawn(serve(listener, server(url).to_owned(), loses.clone()));
        Self { url: url_here, loses }
    }

    /// The server's next reply is lost and its connection closed on both sides; then everything passes again.
    pub(crate) fn lose_next_reply(&self) {
        self.loses.store(true, Ordering::SeqCst);
    }
}

/// The host and port in a URL.
pub(crate) fn server(url: &str) -> &str {
    let (_, rest) = url.split_once('@').unwrap();
    rest.split_once('/').unwrap().0
}

/// The same URL with another host and port.
pub(crate) fn elsewhere(url: &str, address: &str) -> String {
    let (head, rest) = url.split_once('@').unwrap();
    let (_, database) = rest.split_once('/').unwrap();
    format!("{head}@{address}/{database}")
}

async fn serve(listener: TcpListener, server: String, loses: Arc<AtomicBool>) {
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(&server).await else {
            continue;
        };
        let loses = loses.clone();
        tokio::spawn(async move {
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let replies = async {
                let mut buffer = [0; 8192];
                while let Ok(read) = from_server.read(&mut buffer).await {
                    // A server that has answered has committed.
                    if read == 0 || loses.swap(false, Ordering::SeqCst) {
                        break;
                    }
                    if to_client.write_all(&buffer[..read]).await.is_err() {
                        break;
                    }
                }
            };
            tokio::select! {
                () = replies => {}
                _ = copy(&mut from_client, &mut to_server) => {}
            }
        });
    }
}

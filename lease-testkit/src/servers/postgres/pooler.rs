use std::fmt::Write;
use std::sync::Mutex;

use testcontainers::ImageExt;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::{Database, ENGINE, Postgres};
use crate::servers::container::{self, Container};
use crate::servers::instance::Instance;
use crate::servers::{ServerError, image, ports, ready};

/// The image that `cargo xtask images` builds. There is no official one.
const IMAGE: &str = "lease-test-pgbouncer";

/// Where it finds its settings.
const FILE: &str = "/etc/lease-pgbouncer.ini";

/// PgBouncer in transaction mode before a server, in a container.
///
/// It lets everybody in, as the superuser of its server. Consecutive transactions get sessions in turn, so that nothing
/// works only because the same session is there again. Dropping it ends it.
#[derive(Debug)]
pub struct Pooler {
    port: u16,
    _instance: Mutex<Box<dyn Instance>>,
}

impl Pooler {
    /// A pooler before this server, with more settings of its file's section `pgbouncer`, of which later ones win.
    ///
    /// # Errors
    /// [`ServerError::Missing`] without a Docker engine or an image, [`ServerError::NotReady`] if it does not come up within 60
    /// seconds.
    pub fn before(server: &Postgres, settings: &[(&str, &str)]) -> Result<Self, ServerError> {
        let port = ports::free()?;
        let settings: String = settings.iter().fold(String::new(), |mut lines, (setting, value)| {
            let _ = writeln!(lines, "{setting} = {value}");
            lines
        });
        let config = format!(
            "[databases]\n* = {}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = transaction\nserver_round_robin = 1\nmax_client_conn = 1000\n{settings}",
            address(&server.0.admin),
        );
        let instance: Box<dyn Instance> = Box::new(contained(config)?);
        let instance = Mutex::new(instance);
        ready::lock(&instance).start()?;
        let mut own = Config::new();
        own.host("127.0.0.1").port(port).user("postgres").dbname("postgres");
        ready::wait(&own, Some(&instance))?;
        Ok(Self {
            port,
            _instance: instance,
        })
    }

    /// The URL of a database of its server, through it.
    #[must_use]
    pub fn url(&self, database: &Database) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{}", self.port, database.name())
    }
}

fn contained(config: String) -> Result<Container, ServerError> {
    let image = image::built(ENGINE, IMAGE, "1".into())?;
    let command = ["pgbouncer", FILE].map(str::to_owned);
    let request = container::request(image, command)
        .with_copy_to(FILE, config.into_bytes())
        // It has to reach a server that listens on this machine's loopback address alone.
        .with_network("host");
    Ok(Container::of("pgbouncer", request))
}

/// Where the server is and as whom to log in, in the words of the pooler's file.
fn address(server: &Config) -> String {
    let host = match server.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.to_string_lossy().into_owned(),
        None => String::new(),
    };
    let port = server.get_ports().first().copied().unwrap_or(5432);
    let user = server.get_user().unwrap_or("postgres");
    let password = String::from_utf8_lossy(server.get_password().unwrap_or_default()).replace('\'', "''");
    format!("host={host} port={port} user={user} password='{password}'")
}

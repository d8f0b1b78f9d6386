use std::env;
use std::path::PathBuf;

/// The environment variable that names the major version of the servers to run, such as `18`, whether from programs of this
/// machine or in containers. Without it these are the newest here, and 17.
pub const POSTGRES_VERSION: &str = "LEASE_TEST_POSTGRES_VERSION";

/// How a test server is set up.
///
/// The default is quick and not durable: what it wrote survives the death of the server, not that of the machine.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(super) source: Source,
    pub(super) durable: bool,
    pub(super) max_connections: u32,
    pub(super) more: Vec<(String, String)>,
    pub(super) sockets: Option<PathBuf>,
    pub(super) password: Option<String>,
    pub(super) version: Option<String>,
}

/// Where a server may come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Whatever this machine has.
    #[default]
    Any,
    /// Only server programs installed on this machine.
    Local,
    /// Only a container.
    Container,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            source: Source::Any,
            durable: false,
            max_connections: 300,
            more: Vec::new(),
            sockets: None,
            password: None,
            version: env::var(POSTGRES_VERSION).ok(),
        }
    }
}

impl Settings {
    /// Settings whose commits reach the disk, as in production: for measurements.
    #[must_use]
    pub fn durable() -> Self {
        Self {
            durable: true,
            ..Self::default()
        }
    }

    /// Takes the server from this source only; [`ServerError::Missing`](super::ServerError::Missing) where it has none.
    #[must_use]
    pub fn source(mut self, source: Source) -> Self {
        self.source = source;
        self
    }

    /// The most connections the server takes; 300 by default.
    #[must_use]
    pub fn max_connections(mut self, count: u32) -> Self {
        self.max_connections = count;
        self
    }

    /// Has the server's Unix socket in this folder, which it must be able to write to and clients to enter.
    #[must_use]
    pub fn sockets(mut self, folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        self.more
            .push(("unix_socket_directories".into(), folder.to_string_lossy().into_owned()));
        self.sockets = Some(folder);
        self
    }

    /// The superuser's password; a random one by default. Servers that [follow](super::Postgres::follow) each other have the
    /// same.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// One more server setting, such as `("wal_level", "logical")`; later ones win.
    #[must_use]
    pub fn with(mut self, setting: impl Into<String>, value: impl Into<String>) -> Self {
        self.more.push((setting.into(), value.into()));
        self
    }

    /// All server settings but addresses, in the order in which they are to be applied.
    pub(super) fn list(&self, statements_contrib: bool) -> Vec<(String, String)> {
        let mut list = vec![("max_connections", self.max_connections.to_string())];
        if !self.durable {
            list.push(("fsync", "off".into()));
            list.push(("full_page_writes", "off".into()));
        }
        if statements_contrib {
            list.push(("shared_preload_libraries", "pg_stat_statements".into()));
        }
        let list = list.into_iter().map(|(setting, value)| (setting.to_owned(), value));
        list.chain(self.more.iter().cloned()).collect()
    }
}

use std::path::PathBuf;

/// How a test server is set up, of whatever engine.
///
/// The default is quick and not durable: what it wrote survives the death of the server, not that of the machine.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(super) source: Source,
    pub(super) durable: bool,
    pub(super) max_connections: u32,
    pub(super) more: Vec<(String, String)>,
    pub(super) files: Vec<(String, Vec<u8>)>,
    pub(super) sockets: Option<PathBuf>,
    password: Option<String>,
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
            files: Vec::new(),
            sockets: None,
            password: None,
        }
    }
}

impl Settings {
    /// Settings whose commits reach the disk, as in production: for measurements.
    ///
    /// A container of MySQL or MariaDB is on the host's network then, as Docker on Linux has it, and its data are in a volume.
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

    /// Has the server's Unix socket in this folder, which it must be able to write to and clients to enter. The socket of MySQL
    /// and MariaDB is `mysqld.sock` in it.
    #[must_use]
    pub fn sockets(mut self, folder: impl Into<PathBuf>) -> Self {
        self.sockets = Some(folder.into());
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

    /// One more server setting whose value is the path of a file with this text, such as `("ssl_cert", certificate)`.
    ///
    /// The server can read it, and in a container everybody else in there: PostgreSQL refuses such a key.
    #[must_use]
    pub fn with_file(mut self, setting: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        self.files.push((setting.into(), text.into()));
        self
    }

    pub(super) fn password_or_random(&self) -> String {
        let random = || format!("{:032x}", rand::random::<u128>());
        self.password.clone().unwrap_or_else(random)
    }
}

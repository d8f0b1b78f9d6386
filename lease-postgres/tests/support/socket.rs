//! A server that is reached by its Unix socket alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;

use lease_testkit::servers::{Postgres, Settings};
use tempfile::TempDir;

use super::Database;

pub(crate) struct Socketed {
    server: Postgres,
    folder: TempDir,
}

impl Socketed {
    /// The one of this process.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Socketed> = OnceLock::new();
        SHARED.get_or_init(|| {
            let folder = TempDir::new().unwrap();
            // The server has a user of its own.
            fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
            let server = Postgres::private(&Settings::default().sockets(folder.path())).unwrap();
            Self { server, folder }
        })
    }

    /// A database whose URL leads through the socket.
    pub(crate) fn database(&self) -> Database {
        let mut database = Database::on(&self.server);
        let config: tokio_postgres::Config = database.url.parse().unwrap();
        let password = String::from_utf8(config.get_password().unwrap().to_vec()).unwrap();
        // A container's server has the port of its own inside.
        let socket = fs::read_dir(self.folder.path())
            .unwrap()
            .filter_map(|file| file.unwrap().file_name().into_string().ok())
            .find(|name| name.starts_with(".s.PGSQL.") && !name.ends_with(".lock"))
            .unwrap();
        let port = socket.rsplit('.').next().unwrap();
        database.url = format!(
            "host={} port={port} user=postgres password={password} dbname={} sslmode=prefer",
            self.folder.path().display(),
            database.name
        );
        database
    }
}

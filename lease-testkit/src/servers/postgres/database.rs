use tokio_postgres::Config;

use crate::servers::admin::Admin;
use crate::servers::url::with_database;
use crate::servers::{DROP_LIMIT, LIMIT, ServerError};

/// A private, empty database of one test case, dropped with this guard.
///
/// Dropping ends the sessions that still use the database. It is a best effort, within five seconds: a server that is
/// stopped or paused keeps it, and goes away itself at the end of the run.
#[derive(Debug)]
pub struct Database {
    admin: Config,
    own: Config,
    name: String,
    url: String,
}

impl Database {
    pub(super) fn create(admin: Config, server_url: &str) -> Result<Self, ServerError> {
        let name = format!("lease_{:016x}", rand::random::<u64>());
        admin.sql(&format!("CREATE DATABASE {name}"), "create a database", LIMIT)?;
        let mut own = admin.clone();
        own.dbname(&name);
        let url = with_database(server_url, &name);
        Ok(Self { admin, own, name, url })
    }

    /// The URL of this database, for a superuser of its server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its name: `lease_` and 16 random hexadecimal digits.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs SQL text, of one statement or several, on a connection of its own, and returns the first column of its rows.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the server refuses a statement, [`ServerError::TimedOut`] after 60 seconds.
    pub fn sql(&self, text: &str) -> Result<Vec<String>, ServerError> {
        self.own.sql(text, "run a statement of the test", LIMIT)
    }

    /// The process ids of the sessions that clients have in this database, as the server knows them.
    ///
    /// # Errors
    /// As [`Database::sql`].
    pub fn backend_pids(&self) -> Result<Vec<i32>, ServerError> {
        let text = format!(
            "SELECT pid FROM pg_stat_activity WHERE datname = '{}' AND backend_type = 'client backend' \
             AND pid <> pg_backend_pid() ORDER BY pid",
            self.name
        );
        let pids = self.admin.sql(&text, "list its sessions", LIMIT)?;
        Ok(pids
            .iter()
            .map(|pid| pid.parse().expect("the server sends a number"))
            .collect())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let text = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        if let Err(error) = self.admin.sql(&text, "drop a database", DROP_LIMIT) {
            tracing::debug!(database = self.name, %error, "a test database stays until its server ends");
        }
    }
}

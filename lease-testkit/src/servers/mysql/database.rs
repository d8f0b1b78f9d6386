use super::admin::MysqlAdmin;
use crate::servers::admin::Admin;
use crate::servers::url::with_database;
use crate::servers::{DROP_LIMIT, LIMIT, ServerError};

/// A private, empty database of one test case, on MySQL or MariaDB, dropped with this guard.
///
/// Dropping ends the sessions that still use the database. It is a best effort, within five seconds: a server that is
/// stopped, paused or refuses all writes keeps it, and goes away itself at the end of the run.
#[derive(Debug)]
pub struct MysqlDatabase {
    admin: MysqlAdmin,
    own: MysqlAdmin,
    name: String,
    url: String,
}

impl MysqlDatabase {
    pub(super) fn create(admin: MysqlAdmin, server_url: &str) -> Result<Self, ServerError> {
        let name = format!("lease_{:016x}", rand::random::<u64>());
        admin.sql(&format!("CREATE DATABASE {name}"), "create a database", LIMIT)?;
        let own = admin.within(&name);
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
    /// A null is an empty text.
    ///
    /// The session is in UTC, in autocommit, in strict mode, and may write to a server that is read-only for others, whatever
    /// the server's defaults are.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the server refuses a statement, [`ServerError::TimedOut`] after 60 seconds.
    pub fn sql(&self, text: &str) -> Result<Vec<String>, ServerError> {
        self.own.sql(text, "run a statement of the test", LIMIT)
    }

    /// The ids of the sessions that clients have in this database, as `KILL` takes them. Those of [`sql`](Self::sql) are not
    /// among them.
    ///
    /// # Errors
    /// As [`MysqlDatabase::sql`].
    pub fn connection_ids(&self) -> Result<Vec<u64>, ServerError> {
        let text = format!(
            "SELECT id FROM information_schema.processlist WHERE db = '{}' ORDER BY id",
            self.name
        );
        let ids = self.admin.sql(&text, "list its sessions", LIMIT)?;
        Ok(ids
            .iter()
            .map(|id| id.parse().expect("the server sends a number"))
            .collect())
    }

    fn drop_it(&self) -> Result<(), ServerError> {
        let sessions = format!(
            "SELECT CONCAT('KILL ', id) FROM information_schema.processlist WHERE db = '{}'",
            self.name
        );
        for kill in self.admin.sql(&sessions, "list its sessions", DROP_LIMIT)? {
            // It may have ended by itself.
            let _ = self.admin.sql(&kill, "end a session", DROP_LIMIT);
        }
        // Not for ever in the server's queue, once we wait no more.
        let seconds = DROP_LIMIT.as_secs();
        let text = format!(
            "SET lock_wait_timeout = {seconds}; DROP DATABASE IF EXISTS {}",
            self.name
        );
        self.admin.sql(&text, "drop a database", DROP_LIMIT).map(drop)
    }
}

impl Drop for MysqlDatabase {
    fn drop(&mut self) {
        if let Err(error) = self.drop_it() {
            tracing::debug!(database = self.name, %error, "a test database stays until its server ends");
        }
    }
}

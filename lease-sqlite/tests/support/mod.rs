//! A file of its own for each test, and plain SQL beside the repo.

#![allow(dead_code, reason = "each test target uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::path::PathBuf;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::{Connection, SqliteConnection};
use lease_core::{Claim, Label, LeaseName};
use lease_sqlite::{SqliteRepo, lease_core};
use tempfile::TempDir;

/// A file in a folder of its own.
pub(crate) struct Database {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
}

impl Database {
    /// No file yet.
    pub(crate) fn empty() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("leases.db");
        Self { folder, path }
    }

    /// With the table.
    pub(crate) async fn migrated() -> Self {
        let database = Self::empty();
        database.repo().await.migrate().await.unwrap();
        database
    }

    pub(crate) async fn repo(&self) -> SqliteRepo {
        SqliteRepo::open(&self.path).await.unwrap()
    }

    /// A connection for plain SQL, which waits for locks.
    pub(crate) fn sql(&self) -> SqliteConnection {
        let mut connection = SqliteConnection::establish(self.path.to_str().unwrap()).unwrap();
        connection.batch_execute("PRAGMA busy_timeout = 60000").unwrap();
        connection
    }

    pub(crate) fn run(&self, statements: &str) {
        self.sql().batch_execute(statements).unwrap();
    }

    /// Makes all rows look as if the clock had moved on by so many microseconds, or back if negative.
    pub(crate) fn step_clock(&self, by_us: i64) {
        self.run(&format!(
            "UPDATE task_leases SET acquired_at = acquired_at - {by_us}, expires_at = expires_at - {by_us}, \
             released_at = released_at - {by_us}, token = token - min({by_us}, 0)"
        ));
    }
}

pub(crate) fn name(text: &str) -> LeaseName {
    LeaseName::new(text).unwrap()
}

/// A claim of a holder of its own, for 30 s.
pub(crate) fn claim(lease: &str) -> Claim {
    Claim::new(
        name(lease),
        Label::new("pod").unwrap().new_holder(),
        Duration::from_secs(30),
    )
}

/// The whole chain of an error.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text += &format!(": {cause}");
        next = cause.source();
    }
    text
}

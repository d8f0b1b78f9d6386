//! The suite that every backend passes, on a file.

use lease_sqlite::SqliteRepo;
use lease_testkit::{Harness, conformance};

mod support;
use support::Database;

struct File(Database);

impl Harness for File {
    type Repo = SqliteRepo;

    async fn open() -> Self {
        Self(Database::migrated().await)
    }

    async fn client(&self) -> SqliteRepo {
        self.0.repo().await
    }

    async fn step_clock(&self, by_us: i64) {
        self.0.step_clock(by_us);
    }
}

conformance!(File; inspect);

//! The suite that every backend passes, on a real server.

use lease_postgres::PostgresRepo;
use lease_testkit::{Harness, conformance};

mod support;
use support::Database;

struct Postgres(Database);

impl Harness for Postgres {
    type Repo = PostgresRepo;

    async fn open() -> Self {
        Self(Database::migrated().await.0)
    }

    async fn client(&self) -> PostgresRepo {
        self.0.repo().await
    }

    async fn step_clock(&self, by_us: i64) {
        self.0.step_clock(by_us);
    }
}

conformance!(Postgres; inspect; ignore = "needs PostgreSQL: cargo xtask test");

/// What holds when a release deletes the row.
mod deleting {
    use super::*;

    struct Deleting(Database);

    impl Harness for Deleting {
        type Repo = PostgresRepo;

        async fn open() -> Self {
            Self(Database::migrated().await.0)
        }

        async fn client(&self) -> PostgresRepo {
            self.0.repo().await.delete_on_release(true)
        }

        async fn step_clock(&self, by_us: i64) {
            self.0.step_clock(by_us);
        }
    }

    conformance!(Deleting; groups = [basic, renewal, contention]; ignore = "needs PostgreSQL: cargo xtask test");
}

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

/// Over TLS, with the server verified by name.
mod verify_full {
    use super::*;
    use crate::support::tls::Verified;

    struct Encrypted(Database);

    impl Harness for Encrypted {
        type Repo = PostgresRepo;

        async fn open() -> Self {
            let database = Verified::shared().database();
            database.repo().await.migrate().await.unwrap();
            Self(database)
        }

        async fn client(&self) -> PostgresRepo {
            self.0.repo().await
        }

        async fn step_clock(&self, by_us: i64) {
            self.0.step_clock(by_us);
        }
    }

    conformance!(Encrypted; inspect; ignore = "needs PostgreSQL: cargo xtask test");
}

/// Under SERIALIZABLE a commit may fail after its statement has answered with a row. Grants were reported whose commit
/// had failed, until every answer was read to its end.
mod serializable {
    use super::*;

    struct Serializable(Database);

    impl Harness for Serializable {
        type Repo = PostgresRepo;

        async fn open() -> Self {
            let (database, _) = Database::migrated().await;
            database.set("default_transaction_isolation = 'serializable'");
            Self(database)
        }

        async fn client(&self) -> PostgresRepo {
            self.0.repo().await
        }

        async fn step_clock(&self, by_us: i64) {
            self.0.step_clock(by_us);
        }
    }

    conformance!(Serializable; inspect; ignore = "needs PostgreSQL: cargo xtask test");
}

//! The suite that every backend passes, on a real server.

use lease_postgres::PostgresRepo;
use lease_testkit::{Harness, conformance};

mod support;
use support::Database;

/// A harness on a database that this makes, which gets the table; and what is done to each client's repo.
macro_rules! harness {
    ($name:ident: $database:expr) => {
        harness!($name: $database, |repo: PostgresRepo| repo);
    };
    ($name:ident: $database:expr, $client:expr) => {
        struct $name(Database);

        impl Harness for $name {
            type Repo = PostgresRepo;

            async fn open() -> Self {
                let database: Database = $database;
                database.repo().await.migrate().await.unwrap();
                Self(database)
            }

            async fn client(&self) -> PostgresRepo {
                ($client)(self.0.repo().await)
            }

            async fn step_clock(&self, by_us: i64) {
                self.0.step_clock(by_us);
            }
        }
    };
}

harness!(Postgres: Database::empty());
conformance!(Postgres; inspect; ignore = "needs PostgreSQL: cargo xtask test");

/// What holds when a release deletes the row.
mod deleting {
    use super::*;

    harness!(Deleting: Database::empty(), |repo: PostgresRepo| repo.delete_on_release(true));
    conformance!(Deleting; groups = [basic, renewal, contention]; ignore = "needs PostgreSQL: cargo xtask test");
}

/// Over TLS, with the server verified by name.
mod verify_full {
    use super::*;

    harness!(Encrypted: support::tls::Verified::shared().database());
    conformance!(Encrypted; inspect; ignore = "needs PostgreSQL: cargo xtask test");
}

/// Through the server's Unix socket.
mod unix_socket {
    use super::*;

    harness!(Local: support::socket::Socketed::shared().database());
    conformance!(Local; inspect; ignore = "needs PostgreSQL: cargo xtask test");
}

/// Through PgBouncer, which gives each transaction another session.
mod pgbouncer {
    use super::*;

    harness!(Pooled: support::pgbouncer::database());
    conformance!(Pooled; inspect; ignore = "needs PostgreSQL: cargo xtask test");
}

/// In a table of another name and schema.
mod named {
    use super::*;

    harness!(Named: Database::for_table("my ops.Task $1 Leases?'"));
    conformance!(Named; inspect; ignore = "needs PostgreSQL: cargo xtask test");
}

/// Under SERIALIZABLE a commit may fail after its statement has answered with a row. Grants were reported whose commit
/// had failed, until every answer was read to its end.
mod serializable {
    use super::*;

    fn database() -> Database {
        let database = Database::empty();
        database.set("default_transaction_isolation = 'serializable'");
        database
    }

    harness!(Serializable: database());
    conformance!(Serializable; inspect; ignore = "needs PostgreSQL: cargo xtask test");
}

//! The suite that every backend passes, on real servers.

use lease_mysql::MysqlRepo;
use lease_testkit::servers::Dialect;
use lease_testkit::{Harness, conformance};

mod support;
use support::Database;

/// A harness on a database that this makes, which gets the table; and what is done to each client's repo.
macro_rules! harness {
    ($name:ident: $database:expr) => {
        harness!($name: $database, |repo: MysqlRepo| repo);
    };
    ($name:ident: $database:expr, $client:expr) => {
        struct $name(Database);

        impl Harness for $name {
            type Repo = MysqlRepo;

            async fn open() -> Self {
                let database: Database = $database;
                database.repo().await.migrate().await.unwrap();
                Self(database)
            }

            async fn client(&self) -> MysqlRepo {
                ($client)(self.0.repo().await)
            }

            async fn step_clock(&self, by_us: i64) {
                self.0.step_clock(by_us);
            }
        }
    };
}

mod mysql {
    use super::*;

    harness!(Mysql: Database::empty(Dialect::Mysql));
    conformance!(Mysql; inspect; ignore = "needs MySQL: cargo xtask test");

    /// What holds when a release deletes the row.
    mod deleting {
        use super::*;

        harness!(Deleting: Database::empty(Dialect::Mysql), |repo: MysqlRepo| repo.delete_on_release(true));
        conformance!(Deleting; groups = [basic, renewal, contention]; ignore = "needs MySQL: cargo xtask test");
    }

    /// In a table of another name and database.
    mod named {
        use super::*;

        harness!(Named: Database::for_table(Dialect::Mysql, "Task `$1? Leases'"));
        conformance!(Named; groups = [basic, inspect]; ignore = "needs MySQL: cargo xtask test");
    }
}

mod mariadb {
    use super::*;

    harness!(MariaDb: Database::empty(Dialect::MariaDb));
    conformance!(MariaDb; inspect; ignore = "needs MariaDB: cargo xtask test");

    /// What holds when a release deletes the row.
    mod deleting {
        use super::*;

        harness!(Deleting: Database::empty(Dialect::MariaDb), |repo: MysqlRepo| repo.delete_on_release(true));
        conformance!(Deleting; groups = [basic, renewal, contention]; ignore = "needs MariaDB: cargo xtask test");
    }

    /// In a table of another name and database.
    mod named {
        use super::*;

        harness!(Named: Database::for_table(Dialect::MariaDb, "Task `$1? Leases'"));
        conformance!(Named; groups = [basic, inspect]; ignore = "needs MariaDB: cargo xtask test");
    }
}

//! A database of its own for each test, and plain SQL beside the repo.

#![allow(dead_code, reason = "each test target uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::future::Future;
use std::time::Duration;

use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use lease_core::{Claim, Label, LeaseName};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::{Dialect, Mysql, MysqlDatabase, Settings};
use mysql_async::{Conn, Opts, OptsBuilder};

/// A database of a test's own on the shared server; dropped with it.
pub(crate) struct Database {
    pub(crate) url: String,
    /// As `MysqlRepo::table` takes it.
    table: String,
    /// As it stands in a statement.
    quoted: String,
    own: MysqlDatabase,
}

impl Database {
    /// A database without the table.
    pub(crate) fn empty(dialect: Dialect) -> Self {
        Self::on(Mysql::shared(dialect).unwrap())
    }

    /// A database without the table, on a server of a test's own.
    pub(crate) fn on(server: &Mysql) -> Self {
        let own = server.database().unwrap();
        Self {
            url: own.url().to_owned(),
            table: "task_leases".to_owned(),
            quoted: "task_leases".to_owned(),
            own,
        }
    }

    /// A database for a table of this name, which connections have to name the database for.
    pub(crate) fn for_table(dialect: Dialect, table: &str) -> Self {
        let mut database = Self::empty(dialect);
        let name = database.own.name();
        database.table = format!("{name}.{table}");
        database.quoted = format!("`{name}`.`{}`", table.replace('`', "``"));
        database.url = database.url.replace(&format!("/{name}"), "/information_schema");
        database
    }

    /// A database with the table, and a repo on it.
    pub(crate) async fn migrated(dialect: Dialect) -> (Self, MysqlRepo) {
        let database = Self::empty(dialect);
        let repo = database.repo().await;
        repo.migrate().await.unwrap();
        (database, repo)
    }

    pub(crate) fn name(&self) -> &str {
        self.own.name()
    }

    pub(crate) async fn repo(&self) -> MysqlRepo {
        let repo = MysqlRepo::connect(&self.url).await.unwrap();
        repo.table(&self.table).unwrap()
    }

    /// Runs plain SQL on a connection of its own, and answers with the first column.
    pub(crate) fn run(&self, statements: &str) -> Vec<String> {
        self.own.sql(statements).unwrap()
    }

    /// A connection for plain SQL.
    pub(crate) async fn sql(&self) -> Conn {
        Conn::new(opts(&self.url)).await.unwrap()
    }

    /// The whole row as text, or nothing.
    pub(crate) fn row(&self, name: &LeaseName) -> Option<String> {
        let columns = "name, holder, token, acquired_at, expires_at, COALESCE(released_at, '-'), COALESCE(note, '-')";
        let rows = self.run(&format!(
            "SELECT CAST(CONCAT_WS('|', {columns}) AS CHAR) FROM {} WHERE name = '{name}'",
            self.quoted
        ));
        rows.into_iter().next()
    }

    /// The sessions that clients have in it.
    pub(crate) fn sessions(&self) -> Vec<u64> {
        self.own.connection_ids().unwrap()
    }

    /// Makes all rows look as if the server's clock had moved on by so many microseconds, or back if negative.
    pub(crate) fn step_clock(&self, by_us: i64) {
        let table = &self.quoted;
        self.run(&format!(
            "UPDATE {table} SET acquired_at = acquired_at - INTERVAL {by_us} MICROSECOND, \
             expires_at = expires_at - INTERVAL {by_us} MICROSECOND, \
             released_at = released_at - INTERVAL {by_us} MICROSECOND, token = token - LEAST({by_us}, 0)"
        ));
    }

    /// Makes one row expire, whose name is given in hexadecimal digits.
    pub(crate) fn expire(&self, name: &str) {
        let table = &self.quoted;
        self.run(&format!(
            "UPDATE {table} SET expires_at = UTC_TIMESTAMP(6) WHERE name = x'{name}'"
        ));
    }

    /// Makes all rows look as if that much time had passed.
    pub(crate) fn age(&self, by: Duration) {
        self.step_clock(i64::try_from(by.as_micros()).unwrap());
    }
}

/// A server of a test's own, for what would hurt the others: stopping it, freezing it, counting all it does.
pub(crate) fn private_server(dialect: Dialect) -> Mysql {
    Mysql::private(dialect, &Settings::default()).unwrap()
}

/// The options of a connection for plain SQL.
pub(crate) fn opts(url: &str) -> OptsBuilder {
    OptsBuilder::from_opts(Opts::from_url(url).unwrap()).prefer_socket(false)
}

/// The application's pool, with whatever its sessions are set to.
pub(crate) fn pool(url: &str, size: usize, setup: &'static str) -> Pool<AsyncMysqlConnection> {
    let mut config = ManagerConfig::<AsyncMysqlConnection>::default();
    config.recycling_method = RecyclingMethod::Fast;
    config.custom_setup = Box::new(move |url| {
        let url = url.to_owned();
        Box::pin(async move {
            let mut connection = AsyncMysqlConnection::establish(&url).await?;
            let set = connection.batch_execute(setup).await;
            set.map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
            Ok(connection)
        })
    });
    let manager = AsyncDieselConnectionManager::new_with_config(url, config);
    Pool::builder(manager).max_size(size).build().unwrap()
}

/// Nothing to set.
pub(crate) const AS_IT_IS: &str = "DO 0";

/// Makes tests of functions that take a [`Dialect`], one for each engine.
#[allow(unused_macros, reason = "each test target uses its part")]
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod mysql {$(
            #[tokio::test(flavor = "multi_thread")]
            #[ignore = "needs MySQL: cargo xtask test"]
            async fn $name() {
                super::$name(lease_testkit::servers::Dialect::Mysql).await;
            }
        )+}

        mod mariadb {$(
            #[tokio::test(flavor = "multi_thread")]
            #[ignore = "needs MariaDB: cargo xtask test"]
            async fn $name() {
                super::$name(lease_testkit::servers::Dialect::MariaDb).await;
            }
        )+}
    };
}

#[allow(unused_imports, reason = "each test target uses its part")]
pub(crate) use on_both;

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
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

/// The whole chain of an error as a reader of logs may see it.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = format!("{error} / {error:?}");
    let mut next = error.source();
    while let Some(cause) = next {
        text += &format!(" / {cause} / {cause:?}");
        next = cause.source();
    }
    text
}

//! A database of its own for each test, and plain SQL beside the repo.

#![allow(dead_code, reason = "each test target uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

pub(crate) mod pgbouncer;
pub(crate) mod socket;
pub(crate) mod tls;

use std::future::Future;
use std::time::Duration;

use lease_core::{Claim, Label, LeaseName};
use lease_postgres::PostgresRepo;
use lease_testkit::servers::{self, Pooler, Postgres, Settings};
use tokio_postgres::{Client, NoTls};

/// A database of a test's own on the shared server; dropped with it.
pub(crate) struct Database {
    pub(crate) name: String,
    pub(crate) url: String,
    /// As `PostgresRepo::table` takes it.
    table: &'static str,
    own: servers::Database,
}

impl Database {
    /// A database without the table.
    pub(crate) fn empty() -> Self {
        Self::on(Postgres::shared().unwrap())
    }

    /// A database without the table, on a server of a test's own.
    pub(crate) fn on(server: &Postgres) -> Self {
        let own = server.database().unwrap();
        Self {
            name: own.name().to_owned(),
            url: own.url().to_owned(),
            table: "task_leases",
            own,
        }
    }

    /// A database without the table, for one with this schema and name.
    pub(crate) fn for_table(table: &'static str) -> Self {
        let database = Self { table, ..Self::empty() };
        if let Some((schema, _)) = table.split_once('.') {
            database.run(&format!("CREATE SCHEMA \"{schema}\""));
        }
        database
    }

    /// The same database, whose URL leads through a pooler.
    pub(crate) fn through(mut self, pooler: &Pooler) -> Self {
        self.url = pooler.url(&self.own);
        self
    }

    /// A database with the table, and a repo on it.
    pub(crate) async fn migrated() -> (Self, PostgresRepo) {
        let database = Self::empty();
        let repo = database.repo().await;
        repo.migrate().await.unwrap();
        (database, repo)
    }

    pub(crate) async fn repo(&self) -> PostgresRepo {
        let repo = PostgresRepo::connect(&self.url).await.unwrap();
        repo.table(self.table).unwrap()
    }

    /// A connection for plain SQL.
    pub(crate) async fn sql(&self) -> Client {
        sql(&self.url).await
    }

    /// Runs plain SQL on a connection of its own.
    pub(crate) fn run(&self, statements: &str) {
        self.own.sql(statements).unwrap();
    }

    /// What a query answers, a line for each row.
    pub(crate) fn rows(&self, query: &str) -> Vec<String> {
        self.own.sql(query).unwrap()
    }

    /// The process ids of the sessions in it.
    pub(crate) fn sessions(&self) -> Vec<i32> {
        self.own.backend_pids().unwrap()
    }

    /// Changes a setting for new sessions of this database, such as `timezone = 'Europe/Prague'`.
    pub(crate) fn set(&self, setting: &str) {
        self.run(&format!("ALTER DATABASE {} SET {setting}", self.name));
    }

    /// Makes all rows look as if the server's clock had moved on by so many microseconds, or back if negative.
    pub(crate) fn step_clock(&self, by_us: i64) {
        let statement = format!(
            "UPDATE \"{}\" SET acquired_at = acquired_at - {by_us} * interval '1 us', \
             expires_at = expires_at - {by_us} * interval '1 us', \
             released_at = released_at - {by_us} * interval '1 us', token = token - LEAST({by_us}, 0)",
            self.table.replace('.', "\".\"")
        );
        self.own.sql(&statement).unwrap();
    }

    /// Makes all rows look as if that much time had passed.
    pub(crate) fn age(&self, by: Duration) {
        self.step_clock(i64::try_from(by.as_micros()).unwrap());
    }

    /// The whole row as text, or nothing.
    pub(crate) async fn row(&self, name: &LeaseName) -> Option<String> {
        let sql = self.sql().await;
        let rows = sql
            .query("SELECT l::text FROM task_leases l WHERE name = $1", &[&name.as_str()])
            .await
            .unwrap();
        rows.first().map(|row| row.get(0))
    }
}

/// The URL of the server that these tests run on. A test without one fails, it never passes.
pub(crate) fn server_url() -> &'static str {
    Postgres::shared().unwrap().url()
}

/// A server of a test's own, for what would hurt the others: stopping it, freezing it, counting all it does.
pub(crate) fn private_server() -> Postgres {
    Postgres::private(&Settings::default().with("autovacuum", "off")).unwrap()
}

/// A connection for plain SQL.
pub(crate) async fn sql(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

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

//! A database of its own for each test, and plain SQL beside the repo.

#![allow(dead_code, reason = "each test target uses its part")]

pub(crate) mod proxy;
pub(crate) mod server;

use std::future::Future;
use std::time::Duration;

use lease_core::{Claim, Label, LeaseName};
use lease_postgres::PostgresRepo;
use tokio_postgres::{Client, NoTls};

/// A place of its own on the test server; cleared away with it.
pub(crate) struct Database {
    pub(crate) name: String,
    pub(crate) url: String,
    server: String,
    cleanup: String,
}

impl Database {
    /// A database without the table, for what is set per database.
    pub(crate) async fn empty() -> Self {
        let server = server_url();
        let name = format!("lease_{:016x}", random());
        let create = format!("CREATE DATABASE {name} TEMPLATE template0");
        sql(&server).await.batch_execute(&create).await.unwrap();
        let (base, _) = server.rsplit_once('/').unwrap();
        Self {
            url: format!("{base}/{name}"),
            cleanup: format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
            name,
            server,
        }
    }

    /// A schema with the table, which is much faster to make.
    pub(crate) async fn schema() -> Self {
        let server = server_url();
        let name = format!("lease_{:016x}", random());
        sql(&server)
            .await
            .batch_execute(&format!("CREATE SCHEMA {name}"))
            .await
            .unwrap();
        let joint = if server.contains('?') { '&' } else { '?' };
        let database = Self {
            url: format!("{server}{joint}options=-c%20search_path%3D{name}"),
            cleanup: format!("DROP SCHEMA IF EXISTS {name} CASCADE"),
            name,
            server,
        };
        database.repo().await.migrate().await.unwrap();
        database
    }

    /// A database with the table, and a repo on it.
    pub(crate) async fn migrated() -> (Self, PostgresRepo) {
        let database = Self::empty().await;
        let repo = database.repo().await;
        repo.migrate().await.unwrap();
        (database, repo)
    }

    pub(crate) async fn repo(&self) -> PostgresRepo {
        PostgresRepo::connect(&self.url).await.unwrap()
    }

    /// A connection for plain SQL.
    pub(crate) async fn sql(&self) -> Client {
        sql(&self.url).await
    }

    /// Changes a setting for new sessions of this database, such as `timezone = 'Europe/Prague'`.
    pub(crate) async fn set(&self, setting: &str) {
        let statement = format!("ALTER DATABASE {} SET {setting}", self.name);
        self.sql().await.batch_execute(&statement).await.unwrap();
    }

    /// Makes all rows look as if the server's clock had moved on by so many microseconds, or back if negative.
    pub(crate) async fn step_clock(&self, by_us: i64) {
        let statement = format!(
            "UPDATE task_leases SET acquired_at = acquired_at - {by_us} * interval '1 us', \
             expires_at = expires_at - {by_us} * interval '1 us', \
             released_at = released_at - {by_us} * interval '1 us', token = token - LEAST({by_us}, 0)"
        );
        self.sql().await.batch_execute(&statement).await.unwrap();
    }

    /// Makes all rows look as if that much time had passed.
    pub(crate) async fn age(&self, by: Duration) {
        self.step_clock(i64::try_from(by.as_micros()).unwrap()).await;
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

impl Drop for Database {
    /// From a thread of its own: a test's runtime may be about to end.
    fn drop(&mut self) {
        let statement = self.cleanup.clone();
        let server = self.server.clone();
        let dropped =
            std::thread::spawn(move || block_on(async move { sql(&server).await.batch_execute(&statement).await }));
        let _ = dropped.join();
    }
}

/// The server that these tests run on. A test without one fails, it never passes.
pub(crate) fn server_url() -> String {
    std::env::var("LEASE_TEST_POSTGRES_URL").expect("LEASE_TEST_POSTGRES_URL names a server to test on")
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

pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
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

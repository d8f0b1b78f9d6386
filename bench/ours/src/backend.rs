//! [`Backend`]: how a repo of each kind is made.

use std::future::Future;

use bench_harness::Place;
use lease_core::{Repo, RepoError};
use lease_mysql::MysqlRepo;
use lease_postgres::PostgresRepo;
use lease_sqlite::SqliteRepo;

/// A repo that can be made from a URL.
pub trait Backend: Repo + Sized {
    /// Makes it, with so many connections where that is a choice.
    fn open(place: &Place, connections: usize) -> impl Future<Output = Result<Self, RepoError>> + Send;

    /// Makes its table.
    fn make_table(&self) -> impl Future<Output = Result<(), RepoError>> + Send;
}

impl Backend for PostgresRepo {
    async fn open(place: &Place, connections: usize) -> Result<Self, RepoError> {
        let repo = Self::connect(&place.url).await?.connections(connections)?;
        Ok(repo.notify(place.notify))
    }

    async fn make_table(&self) -> Result<(), RepoError> {
        self.migrate().await
    }
}

impl Backend for MysqlRepo {
    async fn open(place: &Place, connections: usize) -> Result<Self, RepoError> {
        Self::connect(&place.url).await?.connections(connections)
    }

    async fn make_table(&self) -> Result<(), RepoError> {
        self.migrate().await
    }
}

/// One thread with one connection, however many clients there are.
impl Backend for SqliteRepo {
    async fn open(place: &Place, _connections: usize) -> Result<Self, RepoError> {
        Self::connect(&place.url).await
    }

    async fn make_table(&self) -> Result<(), RepoError> {
        self.migrate().await
    }
}

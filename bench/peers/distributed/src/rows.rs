//! [`Rows`]: `distributed` with a row in the table `aggregate_locks`.

use std::sync::Arc;

use bench_harness::{Contender, Place};
use distributed::lock::{
    Lock, LockManager, PostgresDialect, SqliteDialect, SqlxLock,
    SqlxLockManager,
};
use sqlx::Pool;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

/// A database that it knows.
pub trait Dialect: distributed::lock::LeaseQueries {
    /// So many connections, each open.
    fn pool(place: &Place, connections: u32) -> impl Future<Output = anyhow::Result<Pool<Self::Db>>> + Send;
}

impl Dialect for PostgresDialect {
    async fn pool(place: &Place, connections: u32) -> anyhow::Result<Pool<Self::Db>> {
        let options = PgPoolOptions::new().max_connections(connections);
        Ok(options.connect(&place.url).await?)
    }
}

/// As durable as ours.
impl Dialect for SqliteDialect {
    async fn pool(place: &Place, connections: u32) -> anyhow::Result<Pool<Self::Db>> {
        let file = SqliteConnectOptions::new()
            .filename(&place.url)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(std::time::Duration::from_secs(10));
        let options = SqlitePoolOptions::new().max_connections(connections);
        Ok(options.connect_with(file).await?)
    }
}

/// One of the clients of one manager.
pub struct Rows<D: Dialect>(Arc<SqlxLockManager<D>>);

impl<D: Dialect> Contender for Rows<D>
where
    SqlxLockManager<D>: Send + Sync,
{
    type Guard = Arc<SqlxLock<D>>;

    const RENEWS: bool = false;

    async fn prepare(place: &Place) -> anyhow::Result<()> {
        Ok(SqlxLockManager::<D>::migrate(&D::pool(place, 1).await?).await?)
    }

    async fn open(place: &Place, clients: usize) -> anyhow::Result<Vec<Self>> {
        let pool = D::pool(place, u32::try_from(clients)?).await?;
        let manager = Arc::new(SqlxLockManager::new(pool).with_lease_ttl(place.ttl));
        Ok((0..clients).map(|_| Self(manager.clone())).collect())
    }

    async fn try_acquire(&mut self, name: &str) -> anyhow::Result<Option<Self::Guard>> {
        let lock = self.0.get_lock(name)?;
        Ok(lock.try_lock().await?.then_some(lock))
    }

    async fn acquire(&mut self, name: &str) -> anyhow::Result<Self::Guard> {
        let lock = self.0.get_lock(name)?;
        lock.lock().await?;
        Ok(lock)
    }

    async fn release(&mut self, lock: Self::Guard) -> anyhow::Result<()> {
        Ok(lock.unlock().await?)
    }
}

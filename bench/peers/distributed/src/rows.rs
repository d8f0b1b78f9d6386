//! [`Rows`]: `distributed` with a row in the table `aggregate_locks`.

use std::sync::Arc;
use std::time::Duration;

use bench_harness::{Contender, Place};
use distributed::lock::{Lock, LockManager, PostgresLockManager, SqliteLockManager};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};

/// A manager on so many connections.
pub trait Manager: LockManager + Sized + 'static {
    /// Makes its table.
    fn make_table(place: &Place) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Opens it.
    fn of(place: &Place, connections: u32) -> impl Future<Output = anyhow::Result<Self>> + Send;
}

impl Manager for PostgresLockManager {
    async fn make_table(place: &Place) -> anyhow::Result<()> {
        Ok(Self::migrate(&postgres(place, 1).await?).await?)
    }

    async fn of(place: &Place, connections: u32) -> anyhow::Result<Self> {
        Ok(Self::new(postgres(place, connections).await?).with_lease_ttl(place.ttl))
    }
}

impl Manager for SqliteLockManager {
    async fn make_table(place: &Place) -> anyhow::Result<()> {
        Ok(Self::migrate(&sqlite(place, 1).await?).await?)
    }

    async fn of(place: &Place, connections: u32) -> anyhow::Result<Self> {
        Ok(Self::new(sqlite(place, connections).await?).with_lease_ttl(place.ttl))
    }
}

async fn postgres(place: &Place, connections: u32) -> anyhow::Result<PgPool> {
    let options = PgPoolOptions::new().max_connections(connections);
    Ok(options.connect(&place.url).await?)
}

/// As durable as ours.
async fn sqlite(place: &Place, connections: u32) -> anyhow::Result<SqlitePool> {
    let file = SqliteConnectOptions::new()
        .filename(&place.url)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(10));
    let options = SqlitePoolOptions::new().max_connections(connections);
    Ok(options.connect_with(file).await?)
}

/// One of the clients of one manager.
pub struct Rows<M>(Arc<M>);

impl<M: Manager> Contender for Rows<M>
where
    M::Lock: 'static,
{
    type Guard = Arc<M::Lock>;

    const RENEWS: bool = false;

    async fn prepare(place: &Place) -> anyhow::Result<()> {
        M::make_table(place).await
    }

    async fn open(place: &Place, clients: usize) -> anyhow::Result<Vec<Self>> {
        let manager = Arc::new(M::of(place, u32::try_from(clients)?).await?);
        Ok((0..clients).map(|_| Self(manager.clone())).collect())
    }

    async fn try_acquire(&mut self, name: &str) -> anyhow::Result<Option<Self::Guard>> {
        let lock = self.0.get_lock(name)?;
        let granted = lock.try_lock().await?;
        Ok(granted.then_some(lock))
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

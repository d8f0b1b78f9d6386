//! [`Advisory`]: sqlx's `PgAdvisoryLock`. Nothing is written, and nothing outlives the session.

use std::collections::HashMap;

use bench_harness::{Contender, Place};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgAdvisoryLock, PgAdvisoryLockGuard, PgPoolOptions};
use sqlx::{Either, PgPool, Postgres};

/// One of the clients of one pool.
pub struct Advisory {
    pool: PgPool,
    locks: HashMap<String, PgAdvisoryLock>,
}

impl Advisory {
    /// Its key is made once.
    fn lock(&mut self, name: &str) -> PgAdvisoryLock {
        if let Some(lock) = self.locks.get(name) {
            return lock.clone();
        }
        let lock = PgAdvisoryLock::new(name);
        self.locks.insert(name.to_owned(), lock.clone());
        lock
    }
}

impl Contender for Advisory {
    type Guard = PgAdvisoryLockGuard<PoolConnection<Postgres>>;

    const RENEWS: bool = false;

    async fn prepare(_place: &Place) -> anyhow::Result<()> {
        Ok(())
    }

    async fn open(place: &Place, clients: usize) -> anyhow::Result<Vec<Self>> {
        let options = PgPoolOptions::new().max_connections(u32::try_from(clients)?);
        let pool = options.connect(&place.url).await?;
        let client = || Self {
            pool: pool.clone(),
            locks: HashMap::new(),
        };
        Ok((0..clients).map(|_| client()).collect())
    }

    async fn try_acquire(&mut self, name: &str) -> anyhow::Result<Option<Self::Guard>> {
        let lock = self.lock(name);
        let connection = self.pool.acquire().await?;
        Ok(match lock.try_acquire(connection).await? {
            Either::Left(guard) => Some(guard),
            Either::Right(_) => None,
        })
    }

    async fn acquire(&mut self, name: &str) -> anyhow::Result<Self::Guard> {
        let lock = self.lock(name);
        Ok(lock.acquire(self.pool.acquire().await?).await?)
    }

    async fn release(&mut self, guard: Self::Guard) -> anyhow::Result<()> {
        guard.release_now().await?;
        Ok(())
    }
}

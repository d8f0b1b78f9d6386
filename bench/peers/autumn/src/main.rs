//! `LeaseLock` of `autumn-web`, used without its framework.

use std::process::ExitCode;

use anyhow::bail;
use autumn_web::lock::{LeaseGuard, LeaseLock};
use bench_harness::{Args, Contender, Outcome, Place, finish, run};
use clap::Parser;
use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod};
use std::time::Duration;

fn main() -> ExitCode {
    finish(who(&Args::parse()))
}

fn who(args: &Args) -> anyhow::Result<Outcome> {
    match args.who.as_str() {
        "postgres" => run::<Autumn>(args),
        other => bail!("{other} is nobody here"),
    }
}

/// One of the clients of one pool.
struct Autumn {
    pool: Pool<AsyncPgConnection>,
    ttl: Duration,
}

impl Autumn {
    fn lock(&self, name: &str) -> LeaseLock {
        LeaseLock::new(self.pool.clone(), name).with_lease_ttl(self.ttl)
    }
}

impl Contender for Autumn {
    type Guard = LeaseGuard;

    const RENEWS: bool = true;

    /// The first use makes the table.
    async fn prepare(place: &Place) -> anyhow::Result<()> {
        for mut first in Self::open(place, 1).await? {
            if let Some(guard) = first.try_acquire("prepare").await? {
                first.release(guard).await?;
            }
        }
        Ok(())
    }

    /// With a pool that asks the server nothing when a connection comes back: its fastest.
    async fn open(place: &Place, clients: usize) -> anyhow::Result<Vec<Self>> {
        let mut config = ManagerConfig::default();
        config.recycling_method = RecyclingMethod::Fast;
        let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new_with_config(&place.url, config);
        let pool = Pool::builder(manager).max_size(clients).build()?;
        let client = || Self {
            pool: pool.clone(),
            ttl: place.ttl,
        };
        Ok((0..clients).map(|_| client()).collect())
    }

    async fn try_acquire(&mut self, name: &str) -> anyhow::Result<Option<LeaseGuard>> {
        Ok(self.lock(name).try_lock().await?)
    }

    async fn acquire(&mut self, name: &str) -> anyhow::Result<LeaseGuard> {
        Ok(self.lock(name).lock().await?)
    }

    async fn release(&mut self, guard: LeaseGuard) -> anyhow::Result<()> {
        Ok(guard.release().await?)
    }

    fn is_lost(guard: &LeaseGuard) -> bool {
        guard.is_lost()
    }
}

//! `distributed-lock-postgres` and `distributed-lock-mysql`: locks of a session. Nothing is written, and nothing outlives it.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use bench_harness::{Args, Contender, Outcome, Place, finish, run};
use clap::Parser;
use distributed_lock_core::traits::{DistributedLock, LockHandle, LockProvider};
use distributed_lock_mysql::MySqlLockProvider;
use distributed_lock_postgres::PostgresLockProvider;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions, MySqlSslMode};
use sqlx::postgres::PgPoolOptions;

fn main() -> ExitCode {
    finish(who(&Args::parse()))
}

fn who(args: &Args) -> anyhow::Result<Outcome> {
    match args.who.as_str() {
        "postgres" => run::<Session<PostgresLockProvider>>(args),
        "mysql" => run::<Session<MySqlLockProvider>>(args),
        other => bail!("{other} is nobody here"),
    }
}

/// A provider on so many connections.
trait Provider: LockProvider + Sized + Send + Sync + 'static {
    fn of(place: &Place, connections: u32) -> impl Future<Output = anyhow::Result<Self>> + Send;
}

impl Provider for PostgresLockProvider {
    async fn of(place: &Place, connections: u32) -> anyhow::Result<Self> {
        let options = PgPoolOptions::new().max_connections(connections);
        let pool = options.connect(&place.url).await?;
        Ok(Self::builder().pool(pool).build().await?)
    }
}

/// Without encryption, as ours on one machine.
impl Provider for MySqlLockProvider {
    async fn of(place: &Place, connections: u32) -> anyhow::Result<Self> {
        let server: MySqlConnectOptions = place.url.parse()?;
        let options = MySqlPoolOptions::new().max_connections(connections);
        let pool = options.connect_with(server.ssl_mode(MySqlSslMode::Disabled)).await?;
        Ok(Self::builder().pool(pool).build().await?)
    }
}

/// One of the clients of one provider.
struct Session<P>(Arc<P>);

impl<P: Provider> Contender for Session<P>
where
    P::Lock: Send + Sync,
    <P::Lock as DistributedLock>::Handle: Send + 'static,
{
    type Guard = <P::Lock as DistributedLock>::Handle;

    const RENEWS: bool = false;

    async fn prepare(_place: &Place) -> anyhow::Result<()> {
        Ok(())
    }

    async fn open(place: &Place, clients: usize) -> anyhow::Result<Vec<Self>> {
        let provider = Arc::new(P::of(place, u32::try_from(clients)?).await?);
        Ok((0..clients).map(|_| Self(provider.clone())).collect())
    }

    async fn try_acquire(&mut self, name: &str) -> anyhow::Result<Option<Self::Guard>> {
        Ok(self.0.create_lock(name).try_acquire().await?)
    }

    async fn acquire(&mut self, name: &str) -> anyhow::Result<Self::Guard> {
        Ok(self.0.create_lock(name).acquire(Some(Duration::from_secs(60))).await?)
    }

    async fn release(&mut self, handle: Self::Guard) -> anyhow::Result<()> {
        Ok(handle.release().await?)
    }
}

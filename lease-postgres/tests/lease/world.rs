//! A database of a test's own with the table in it, pods on it, and a look at its rows from outside.

use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod};
use lease_core::{BootClock, Clock, Lease, Moment, Outcome, Ran, Release, RepoError, RepoErrorKind, Skip};
use lease_postgres::PostgresRepo;
use lease_testkit::servers::{Database, Postgres, Settings};

pub(crate) const TTL: Duration = secs(3);

pub(crate) struct World {
    // Dropped first: afterwards nobody is there to be told.
    pub(crate) database: Database,
    private: Option<Postgres>,
}

impl World {
    /// On the server that all tests share.
    pub(crate) async fn shared() -> Self {
        let database = Postgres::shared().unwrap().database().unwrap();
        let private = None;
        let world = Self { database, private };
        world.repo().await.migrate().await.unwrap();
        world
    }

    /// On a server of its own, to be stopped, frozen, or changed as a whole.
    pub(crate) async fn private() -> Self {
        let world = Self::private_and_empty();
        world.repo().await.migrate().await.unwrap();
        world
    }

    pub(crate) fn private_and_empty() -> Self {
        let server = Postgres::private(&Settings::default()).unwrap();
        let database = server.database().unwrap();
        let private = Some(server);
        Self { database, private }
    }

    pub(crate) fn server(&self) -> &Postgres {
        self.private.as_ref().expect("this test has a server of its own")
    }

    pub(crate) async fn repo(&self) -> PostgresRepo {
        PostgresRepo::connect(self.database.url()).await.unwrap()
    }

    pub(crate) async fn pod(&self) -> Lease {
        Lease::new(self.repo().await)
    }

    /// As an application has it. It hands out a connection without asking the server for a sign of life.
    pub(crate) fn pool(&self, size: usize) -> Pool<AsyncPgConnection> {
        let mut config = ManagerConfig::<AsyncPgConnection>::default();
        config.recycling_method = RecyclingMethod::Fast;
        let manager = AsyncDieselConnectionManager::new_with_config(self.database.url(), config);
        Pool::builder(manager).max_size(size).build().unwrap()
    }

    /// A connection of another driver.
    pub(crate) async fn plain(&self) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(self.database.url(), tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        client
    }

    pub(crate) fn is_free(&self, name: &str) -> bool {
        self.count(&format!("name = '{name}' AND expires_at > clock_timestamp()")) == 0
    }

    pub(crate) fn count(&self, condition: &str) -> usize {
        let text = format!("SELECT 1 FROM task_leases WHERE {condition}");
        self.database.sql(&text).unwrap().len()
    }

    /// The holder of a row and its token, by which a tenure is known.
    pub(crate) fn tenure(&self, name: &str) -> Vec<String> {
        let text = format!("SELECT holder || ' ' || token FROM task_leases WHERE name = '{name}'");
        self.database.sql(&text).unwrap()
    }

    /// Ends all connections to the database.
    pub(crate) fn terminate(&self) {
        let others = "datname = current_database() AND pid <> pg_backend_pid()";
        let text = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}");
        self.database.sql(&text).unwrap();
    }
}

/// A tick that finds the lease free, and runs.
pub(crate) async fn ticks(lease: &Lease) {
    kept(lease.run("job", TTL, async |_| ()).await.unwrap());
}

/// The value of an f that ran to its end, was never told to stop, and whose row was still its own.
pub(crate) fn kept<T: Debug>(outcome: Outcome<T>) -> T {
    match outcome {
        Outcome::Ran(Ran {
            value,
            stop: None,
            release: Ok(Release::Released),
            ..
        }) => value,
        other => panic!("the lease was not kept: {other:?}"),
    }
}

/// A tick that is skipped because of the store, within the bound of an acquire and with the reason.
pub(crate) async fn skips(lease: &Lease) -> RepoError {
    // The bound is 0.6 s, and a quarter more for a backend that does not keep it; the rest is for a busy machine.
    let tick = within(
        secs(3),
        lease.run("job", TTL, async |_| unreachable!("f must not start")),
    );
    store_error(tick.await.unwrap())
}

pub(crate) fn store_error(outcome: Outcome<()>) -> RepoError {
    match outcome {
        Outcome::Skipped(Skip::Store(error)) => error,
        other => panic!("not skipped because of the store: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_kind(error: &RepoError, kinds: &[RepoErrorKind]) {
    assert!(kinds.contains(&error.kind()), "{}", chain(error));
}

/// The whole chain of an error.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text += &format!(": {cause}");
        next = cause.source();
    }
    text
}

pub(crate) async fn within<T: Debug>(limit: Duration, future: impl Future<Output = T>) -> T {
    let answer = tokio::time::timeout(limit, future).await;
    answer.unwrap_or_else(|_| panic!("no answer within {limit:?}"))
}

/// Waits until it is so, and answers how long that took.
pub(crate) async fn until(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) -> Duration {
    let start = now();
    while !is_so() {
        assert!(now().since(start) < limit, "{limit:?} later it is still not so: {what}");
        sleep(ms(20)).await;
    }
    now().since(start)
}

pub(crate) async fn sleep(duration: Duration) {
    BootClock.sleep_until(now() + duration).await;
}

pub(crate) fn now() -> Moment {
    BootClock.now()
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

//! A database of a test's own with the table in it, pods on it, and a look at its rows from outside.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use lease_core::{BootClock, Clock, Lease, Moment, Outcome, Ran, Release, RepoError, RepoErrorKind, Skip};
use lease_testkit::servers::Dialect;

use crate::support::{Database, chain};

pub(crate) const TTL: Duration = secs(3);

pub(crate) struct World {
    pub(crate) database: Database,
}

impl World {
    /// On the server that all tests share.
    pub(crate) async fn shared(dialect: Dialect) -> Self {
        let (database, _) = Database::migrated(dialect).await;
        Self { database }
    }

    pub(crate) async fn pod(&self) -> Lease {
        Lease::new(self.database.repo().await)
    }

    pub(crate) fn is_free(&self, name: &str) -> bool {
        let text = format!("SELECT 1 FROM task_leases WHERE name = '{name}' AND expires_at > UTC_TIMESTAMP(6)");
        self.database.run(&text).is_empty()
    }
}

/// The full name of a test that both engines have, in a module of this program.
pub(crate) fn test_name(dialect: Dialect, module: &str, test: &str) -> String {
    let engine = if dialect == Dialect::Mysql { "mysql" } else { "mariadb" };
    format!("{module}::{engine}::{test}")
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
    match tick.await.unwrap() {
        Outcome::Skipped(Skip::Store(error)) => error,
        other => panic!("not skipped because of the store: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_kind(error: &RepoError, kinds: &[RepoErrorKind]) {
    assert!(kinds.contains(&error.kind()), "{}", chain(error));
}

pub(crate) async fn within<T: Debug>(limit: Duration, future: impl Future<Output = T>) -> T {
    let answer = tokio::time::timeout(limit, future).await;
    answer.unwrap_or_else(|_| panic!("no answer within {limit:?}"))
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let start = now();
    while !is_so() {
        assert!(now().since(start) < limit, "{limit:?} later it is still not so: {what}");
        sleep(ms(20)).await;
    }
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

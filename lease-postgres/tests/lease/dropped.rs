//! C27, C29: a grant that reaches nobody is given back.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use lease_core::{Lease, Outcome, RepoErrorKind};
use lease_postgres::PostgresRepo;

use crate::relay::Relay;
use crate::world::{TTL, World, assert_kind, now, secs, skips, ticks, until};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c27_a_grant_whose_reply_was_lost_is_free_again_within_a_second() {
    let world = World::shared().await;
    let relay = Relay::before(world.database.url(), "127.0.0.1").await;
    let lease = Lease::new(PostgresRepo::connect(&relay.url).await.unwrap());
    // On a connection whose statements are prepared, the next reply is the grant's.
    ticks(&lease).await;
    for round in 0..5 {
        let before = world.tenure("job");
        relay.lose_next_reply();
        let error = skips(&lease).await;
        let lost = now();
        assert_kind(&error, &[RepoErrorKind::Unavailable]);
        assert!(error.may_have_executed());
        assert_ne!(world.tenure("job"), before, "round {round}: it was granted");
        until("the row is free", secs(1), || world.is_free("job")).await;
        assert!(now().since(lost) < secs(1), "round {round}");
        ticks(&lease).await;
    }
}

/// Polls a future once, drops it that much later, and answers whether it was still under way after the poll.
///
/// It nearly always is, since an answer takes a round trip; yet the machine may rest within the poll for that long.
/// Then it is what was answered that is dropped, which has to be given back as well.
fn dropped_after<F: Future>(delay: Duration, future: F) -> bool {
    let mut future = pin!(future);
    let pending = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_pending();
    // The keeper works meanwhile, on its own thread; what it answers is met by the drop.
    thread::sleep(delay);
    pending
}

/// Drops an acquire after each of many delays. Every row is free soon, and the lease and its pool still work.
///
/// Answers how many were dropped under way.
async fn drops(world: &World, lease: &Lease, prefix: &str, delays: impl Iterator<Item = u64>) -> usize {
    let mut names = Vec::new();
    let mut under_way = 0;
    for delay in delays {
        let name = format!("{prefix} {delay}");
        if dropped_after(Duration::from_micros(delay), lease.try_acquire(&name, secs(60))) {
            under_way += 1;
        }
        names.push(name);
    }
    // Each is granted, sooner or later, and given back: far from the ttl of a minute.
    let given_back = || world.count(&format!("name LIKE '{prefix} %' AND released_at IS NOT NULL")) == names.len();
    until("every row is released", secs(10), given_back).await;
    assert!(names.iter().all(|name| world.is_free(name)));
    for name in names {
        let tick = lease.run(&name, secs(60), async |_| ()).await.unwrap();
        assert!(matches!(tick, Outcome::Ran(_)), "{name}: {tick:?}");
    }
    under_way
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c29_an_acquire_dropped_at_any_time_leaves_nothing_held() {
    let world = World::shared().await;
    let repo = world.repo().await;
    let warm = Lease::new(repo.clone());
    ticks(&warm).await;
    let warm = drops(&world, &warm, "warm", (0..60).map(|step| step * 100)).await;
    assert!(warm > 30, "{warm} of 60 were dropped under way");
    let mut colds = 0;
    for delay in (0..10).map(|step| step * 2_000) {
        // Dropped also while the pool opens its first connection.
        let cold = Lease::new(repo.clone());
        colds += drops(&world, &cold, &format!("cold {delay}"), [delay].into_iter()).await;
    }
    assert!(colds > 5, "{colds} of 10 were dropped under way");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c29_an_acquire_dropped_at_any_time_leaves_the_applications_pool_usable() {
    let world = World::shared().await;
    let pool = world.pool(2);
    let lease = Lease::new(PostgresRepo::new(pool.clone()).unwrap());
    ticks(&lease).await;
    let pooled = drops(&world, &lease, "pooled", (0..60).map(|step| step * 100)).await;
    assert!(pooled > 30, "{pooled} of 60 were dropped under way");
    let both = tokio::time::timeout(TTL, async { (pool.get().await.is_ok(), pool.get().await.is_ok()) });
    assert_eq!(both.await, Ok((true, true)), "no connection went missing");
}

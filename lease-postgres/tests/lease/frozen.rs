//! C44, C52: a session of the server is frozen with a statement inside, and goes on when nobody waits for it any more.

use lease_core::{Lease, RepoErrorKind};
use lease_postgres::PostgresRepo;

use crate::world::{TTL, World, assert_kind, kept, ms, now, secs, skips, sleep, store_error, ticks, until, within};

/// The application's pool has two connections, both frozen: one gets the acquire, the other its undo. The next try
/// opens a third.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c44_an_acquire_and_its_undo_that_run_late_leave_the_next_tenure_alone() {
    let world = World::private().await;
    let pool = world.pool(3);
    let lease = Lease::new(PostgresRepo::new(pool.clone()).unwrap());
    // Both prepare their statements, so that later one message is all that a statement needs.
    let first = pool.get().await.unwrap();
    ticks(&lease).await;
    let second = pool.get().await.unwrap();
    drop(first);
    ticks(&lease).await;
    drop(second);
    let frozen = world.database.backend_pids().unwrap();
    for pid in &frozen {
        world.server().pause_backend(*pid).unwrap();
    }
    let sessions = || {
        let text = "SELECT pid || ' ' || state_change FROM pg_stat_activity WHERE datname = current_database() \
                    AND pid <> pg_backend_pid()";
        world.database.sql(text).unwrap()
    };
    let (before, idle) = (world.tenure("job"), sessions());
    assert_eq!(idle.len(), 2);
    let error = skips(&lease).await;
    assert_kind(&error, &[RepoErrorKind::Timeout]);
    assert!(error.may_have_executed(), "it was sent");
    // Time for the undo to take the other connection, before the next try takes one.
    sleep(ms(200)).await;
    let outcome = lease.run("job", TTL, async |held| {
        let ours = world.tenure("job");
        assert!(
            ours != before && ours[0].starts_with(held.holder().as_str()),
            "{ours:?}"
        );
        for pid in &frozen {
            world.server().resume_backend(*pid).unwrap();
        }
        // The acquire's session then ends, since its client is gone; the undo's is idle again.
        let executed = || !sessions().iter().any(|session| idle.contains(session));
        until("both have executed what they had", secs(5), executed).await;
        assert_eq!(world.tenure("job"), ours, "f's row is untouched");
        sleep(TTL * 2).await;
        assert_eq!(world.tenure("job"), ours);
        held.is_live()
    });
    assert!(kept(outcome.await.unwrap()));
}

/// With connections of its own the undo goes to another session at once and finds nothing to undo.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c44_an_acquire_that_runs_late_leaves_the_next_tenure_alone() {
    let world = World::private().await;
    let lease = world.pod().await;
    ticks(&lease).await;
    let [frozen] = world.database.backend_pids().unwrap()[..] else {
        panic!("its pool has one connection")
    };
    world.server().pause_backend(frozen).unwrap();
    let error = skips(&lease).await;
    assert_kind(&error, &[RepoErrorKind::Timeout]);
    assert!(error.may_have_executed(), "it was sent");
    let outcome = lease.run("job", TTL, async |held| {
        let ours = world.tenure("job");
        world.server().resume_backend(frozen).unwrap();
        let ended = || !world.database.backend_pids().unwrap().contains(&frozen);
        until("it has executed what it had", secs(5), ended).await;
        sleep(TTL).await;
        assert_eq!(world.tenure("job"), ours, "f's row is untouched");
        held.is_live()
    });
    assert!(kept(outcome.await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c52_an_acquire_that_is_executed_after_its_undo_is_undone_again() {
    let world = World::private().await;
    let lease = world.pod().await;
    ticks(&lease).await;
    let [frozen] = world.database.backend_pids().unwrap()[..] else {
        panic!("its pool has one connection")
    };
    let before = world.tenure("job");
    world.server().pause_backend(frozen).unwrap();
    // With this ttl, an end within seconds is no expiry.
    let ttl = secs(60);
    let tick = within(
        secs(5),
        lease.run("job", ttl, async |_| unreachable!("f must not start")),
    );
    assert_kind(&store_error(tick.await.unwrap()), &[RepoErrorKind::Timeout]);
    // Meanwhile undo after undo has found nothing.
    sleep(secs(2)).await;
    assert_eq!(world.tenure("job"), before, "nothing was executed yet");
    world.server().resume_backend(frozen).unwrap();
    let resumed = now();
    let executed = || world.tenure("job") != before;
    until("it is executed late", secs(1), executed).await;
    until("the row is free", secs(2), || world.is_free("job")).await;
    assert!(now().since(resumed) < secs(2), "{:?}", now().since(resumed));
    ticks(&lease).await;
}

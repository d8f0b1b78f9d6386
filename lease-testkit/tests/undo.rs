//! What has to be undone, repeated or tried again: nothing stays held that nobody knows of, and no job stays away.

mod world;

use std::future::{Future, poll_fn};
use std::task::Poll;

use lease_core::{Operation, Outcome, RepoErrorKind, Skip};
use lease_testkit::Fault;
use world::{TTL, World, ms, secs};

#[tokio::test(start_paused = true)]
async fn c24_an_outage_costs_the_ticks_it_lasts_and_no_more() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    let tick = || lease.with_lease("job", TTL, async |_| Ok::<_, ()>(()));
    for kind in [
        RepoErrorKind::SchemaMissing,
        RepoErrorKind::Unavailable,
        RepoErrorKind::ReadOnly,
    ] {
        faults.on(Operation::Acquire, Fault::Fails(kind));
        for _ in 0..6 {
            assert_eq!(tick().await, Ok(None));
            world.sleep(secs(5)).await;
        }
        faults.heal();
        assert_eq!(tick().await, Ok(Some(())), "after {kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn c26_a_server_that_turns_read_only_and_back_costs_the_ticks_it_lasts() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    let outcome = lease.run("job", TTL, async |held| {
        faults.on(Operation::Renew, Fault::Fails(RepoErrorKind::ReadOnly));
        world.sleep(secs(8)).await;
        faults.heal();
        world.sleep(TTL).await;
        held.stop().is_none()
    });
    assert_eq!(outcome.await.unwrap().into_value(), Some(true), "it came back in time");
    faults.on(Operation::Acquire, Fault::Fails(RepoErrorKind::ReadOnly));
    let Outcome::Skipped(Skip::Store(error)) = lease.run("job", TTL, async |_| ()).await.unwrap() else {
        panic!("it takes no writes")
    };
    assert_eq!(error.kind(), RepoErrorKind::ReadOnly);
    faults.heal();
    assert!(matches!(lease.run("job", TTL, async |_| ()).await, Ok(Outcome::Ran(_))));
}

#[tokio::test(start_paused = true)]
async fn c27_a_grant_whose_reply_was_lost_is_free_again_within_a_second() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    let (other, _) = world.pod("b");
    for lost in [Fault::ReplyLost, Fault::HangReply] {
        faults.next_acquire(lost);
        let tick = lease
            .run("job", TTL, async |_| unreachable!("not granted"))
            .await
            .unwrap();
        assert!(matches!(tick, Outcome::<()>::Skipped(Skip::Store(_))), "{tick:?}");
        world.sleep(secs(1)).await;
        assert!(world.is_free(), "{lost:?}");
        assert!(matches!(other.run("job", TTL, async |_| ()).await, Ok(Outcome::Ran(_))));
    }
}

/// Drops a future after so many polls. Answers whether it was still going on.
async fn dropped_after<F: Future>(polls: usize, future: F) -> bool {
    let mut future = Box::pin(future);
    for _ in 0..polls {
        let ready = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await;
        if ready {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

#[tokio::test(start_paused = true)]
async fn c29_an_acquire_dropped_at_any_point_leaves_nothing_held() {
    let faults_met = [
        None,
        Some(Fault::Fails(RepoErrorKind::Other)),
        Some(Fault::ReplyLost),
        Some(Fault::DelayReply(ms(700))),
        Some(Fault::Delay(ms(700))),
        Some(Fault::Hang),
        Some(Fault::HangReply),
    ];
    for fault in faults_met {
        for polls in 0..12 {
            let world = World::new();
            let (lease, faults) = world.pod("a");
            if let Some(fault) = fault {
                faults.next_acquire(fault);
            }
            let waiting = dropped_after(polls, lease.try_acquire("job", TTL)).await;
            world.sleep(secs(4)).await;
            faults.heal();
            assert!(world.is_free(), "{fault:?} after {polls} polls, dropped: {waiting}");
            assert!(
                matches!(lease.run("job", TTL, async |_| ()).await, Ok(Outcome::Ran(_))),
                "{fault:?} {polls}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c44_an_undo_that_runs_late_leaves_the_next_tenure_alone() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    faults.next_acquire(Fault::RunsLate);
    faults.on(Operation::Release, Fault::RunsLate);
    let tick = lease.run("job", TTL, async |_| ()).await.unwrap();
    assert!(matches!(tick, Outcome::Skipped(Skip::Store(_))));
    let outcome = lease.run("job", TTL, async |held| {
        let before = world.row();
        assert!(faults.run_late().await >= 2, "the acquire and its undo");
        assert_eq!(world.row(), before, "f's row is untouched");
        world.sleep(TTL * 2).await;
        faults.run_late().await;
        held.is_live()
    });
    assert_eq!(outcome.await.unwrap().into_value(), Some(true));
}

#[tokio::test(start_paused = true)]
async fn c52_an_acquire_that_executes_after_its_undo_is_undone_again() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    faults.next_acquire(Fault::Frozen);
    let tick = lease.run("job", TTL, async |_| ()).await.unwrap();
    assert!(matches!(tick, Outcome::Skipped(Skip::Store(_))));
    world.sleep(secs(5)).await;
    assert!(faults.calls(Operation::Release) > 3, "not held, and asked again");
    assert_eq!(faults.run_late().await, 1);
    assert!(!world.is_free(), "a row that nobody knows of");
    world.sleep(secs(2)).await;
    assert!(world.is_free());
}

#[tokio::test(start_paused = true)]
async fn a_failed_release_is_repeated_until_it_is_answered() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    faults.next_release(Fault::Fails(RepoErrorKind::Unavailable));
    faults.next_release(Fault::Hang);
    let Outcome::Ran(ran) = lease.run("job", TTL, async |_| ()).await.unwrap() else {
        panic!("f ran")
    };
    assert!(ran.release.is_err(), "the first try is what the caller is told of");
    assert!(!world.is_free());
    world.sleep(secs(9)).await;
    assert!(world.is_free(), "and it goes on without him");
    let calls = faults.calls(Operation::Release);
    world.sleep(TTL * 3).await;
    assert_eq!(faults.calls(Operation::Release), calls, "until it is answered");
}

#[tokio::test(start_paused = true)]
async fn a_release_is_repeated_after_the_last_lease_and_guard_are_gone() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    let guard = lease.try_acquire("job", TTL).await.unwrap().unwrap();
    faults.next_release(Fault::Fails(RepoErrorKind::Unavailable));
    drop((guard, lease));
    world.sleep(secs(2)).await;
    assert!(world.is_free());
    assert_eq!(faults.calls(Operation::Release), 2);
}

/// It once waited for ever, and kept its thread, the store and its connections: its last timer had ended its last tenure.
#[tokio::test(start_paused = true)]
async fn a_keeper_that_gives_its_last_undo_up_ends_with_it() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    faults.next_acquire(Fault::Fails(RepoErrorKind::Unavailable));
    let tasks = tokio::runtime::Handle::current().metrics();
    assert!(lease.try_acquire("job", TTL).await.is_err());
    drop(lease);
    world.sleep(TTL * 2 - secs(1)).await;
    assert_eq!(tasks.num_alive_tasks(), 1, "it undoes what may still be executed");
    world.sleep(secs(2)).await;
    assert_eq!(
        tasks.num_alive_tasks(),
        0,
        "it has nothing to do, and nobody can ask it any more"
    );
}

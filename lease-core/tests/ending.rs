//! How a tenure ends from outside: shutdown, eviction, dropped guards.

mod world;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lease_core::{Event, Evict, Inspect, Label, Loss, Note, OnLost, Options, Outcome, Release, Skip, Stop, Wait};
use world::{NAME, TTL, World, secs};

fn operator() -> (Label, Note) {
    (Label::new("ops").unwrap(), Note::new("maintenance").unwrap())
}

#[tokio::test(start_paused = true)]
async fn c21_a_shutdown_renews_until_f_has_ended_and_then_frees_the_row() {
    let world = World::new();
    let lease = world.pod("a");
    let job = lease.job("job", TTL).unwrap();
    let running = tokio::spawn({
        let clock = world.clock;
        async move {
            let f = async move |held: lease_core::Held| {
                let stop = held.cancelled().await;
                lease_core::Clock::sleep_until(&clock, lease_core::Clock::now(&clock) + TTL * 2).await;
                assert!(held.is_live(), "renewed while it winds down");
                stop
            };
            job.run(f).await
        }
    });
    world.sleep(secs(1)).await;
    let successor = world.pod("b");
    let next = tokio::spawn(async move { successor.acquire("job", TTL, Wait::Forever).await });
    let start = world.repo.now_us();
    assert_eq!(lease.shutdown(TTL * 4).await, []);
    assert_eq!(
        (world.repo.now_us() - start) / 1_000_000,
        24,
        "as long as f needs, and no longer"
    );
    let Outcome::Ran(ran) = running.await.unwrap() else {
        panic!("f ran to its end")
    };
    assert!(matches!(ran.value, Stop::ShutDown) && matches!(ran.stop, Some(Stop::ShutDown)));
    assert_eq!(ran.release.unwrap(), Release::Released);
    drop(next.await.unwrap().unwrap());
    assert!(
        (world.repo.now_us() - start) < 25_000_000 + 1_000,
        "the successor starts within a second"
    );
    assert!(matches!(
        lease.run("job", TTL, async |_| ()).await,
        Ok(Outcome::Skipped(Skip::ShuttingDown))
    ));
    assert!(matches!(
        lease.try_acquire("x", TTL).await,
        Err(lease_core::AcquireError::ShuttingDown)
    ));
}

#[tokio::test(start_paused = true)]
async fn c41_after_the_grace_nothing_of_it_runs_and_the_row_is_free() {
    let world = World::new();
    let lease = world.pod("a");
    let job = lease.job("job", TTL).unwrap();
    let running = tokio::spawn(async move { job.run(async |_| std::future::pending::<()>().await).await });
    world.sleep(secs(1)).await;
    assert_eq!(lease.shutdown(secs(3)).await, []);
    assert!(matches!(
        running.await.unwrap(),
        Outcome::Dropped {
            stop: Stop::ShutDown,
            ..
        }
    ));
    assert!(world.is_free());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_names_what_would_not_end_and_leaves_its_row() {
    let world = World::new();
    let lease = world.pod("a");
    let job = lease
        .job("job", Options::from(TTL).on_lost(OnLost::SignalOnly))
        .unwrap();
    let running = tokio::spawn(async move { job.run(async |_| std::future::pending::<()>().await).await });
    world.sleep(secs(1)).await;
    assert_eq!(lease.shutdown(secs(3)).await, std::slice::from_ref(&NAME));
    assert!(
        !world.is_free() && world.row().unwrap().released_at.is_none(),
        "nothing is released"
    );
    world.sleep(TTL).await;
    assert!(world.is_free(), "renewal has stopped");
    assert!(!running.is_finished());
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_what_waits() {
    let world = World::new();
    let guard = world.pod("a").try_acquire("job", TTL).await.unwrap().unwrap();
    let lease = world.pod("b");
    let waiting = tokio::spawn({
        let lease = lease.clone();
        async move { lease.acquire("job", TTL, Wait::Forever).await }
    });
    world.sleep(secs(1)).await;
    assert_eq!(lease.shutdown(secs(1)).await, []);
    assert!(matches!(
        waiting.await.unwrap(),
        Err(lease_core::AcquireError::ShuttingDown)
    ));
    assert_eq!(
        world.pod("c").shutdown(secs(1)).await,
        [],
        "a lease that never ran anything"
    );
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn c47_an_evicted_holder_is_told_and_nobody_starts_before_its_time_is_over() {
    let world = World::new();
    let (lease, (by, reason)) = (world.pod("a"), operator());
    let job = lease.job("job", TTL).unwrap();
    let clock = world.clock;
    let running = tokio::spawn(async move {
        let f = async move |held: lease_core::Held| {
            let stop = held.cancelled().await;
            assert!(held.is_live(), "it keeps the time that it had");
            lease_core::Clock::sleep_until(&clock, lease_core::Clock::now(&clock) + secs(60)).await;
            stop
        };
        job.run(f).await
    });
    world.sleep(secs(1)).await;
    let before = world.row().unwrap();
    let Evict::Evicted { free_in, .. } = world.repo.evict(&NAME, &by, &reason).await.unwrap() else {
        panic!("it is live")
    };
    assert_eq!(free_in, secs(11));
    let other = world.pod("b");
    world.sleep(secs(10)).await;
    assert!(matches!(
        other.run("job", TTL, async |_| ()).await,
        Ok(Outcome::Skipped(Skip::Busy(Some(_))))
    ));
    assert!(!running.is_finished(), "f may run to its drop_at");
    let row = world.row().unwrap();
    assert_eq!(
        (row.holder.as_str(), row.expires_at),
        ("evict/ops", before.expires_at),
        "no renewal restored it"
    );
    let Outcome::Dropped {
        stop: Stop::Lost(Loss::Evicted { by }),
        ..
    } = running.await.unwrap()
    else {
        panic!("dropped, and told why")
    };
    assert_eq!(by, "ops");
    assert!(
        world.repo.now_us() < before.expires_at,
        "f is gone before the next one may start"
    );
    world.sleep(secs(1)).await;
    assert!(matches!(other.run("job", TTL, async |_| ()).await, Ok(Outcome::Ran(_))));
}

#[tokio::test(start_paused = true)]
async fn an_eviction_at_once_drops_f_at_its_next_renewal() {
    let world = World::new();
    let (lease, (by, reason)) = (world.pod("a"), operator());
    let job = lease.job("job", TTL).unwrap();
    let running = tokio::spawn(async move { job.run(async |_| std::future::pending::<()>().await).await });
    world.sleep(secs(1)).await;
    world.repo.evict_now(&NAME, &by, &reason).await.unwrap();
    assert!(world.is_free());
    let Outcome::Dropped {
        stop: Stop::Lost(Loss::Taken(by)),
        ..
    } = running.await.unwrap()
    else {
        panic!("dropped, and told why")
    };
    assert_eq!(by.holder, "evict/ops");
    assert_eq!(
        world.row().unwrap().holder,
        "evict/ops",
        "its release left the row alone"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pause_displaces_the_holder_and_keeps_everyone_off() {
    let world = World::new();
    let (lease, (by, reason)) = (world.pod("a"), operator());
    let job = lease.job("job", TTL).unwrap();
    let running = tokio::spawn(async move { job.run(async |held| held.cancelled().await).await });
    world.sleep(secs(1)).await;
    world.repo.pause(&NAME, secs(100), &by, &reason).await.unwrap();
    assert!(matches!(
        running.await.unwrap().into_value(),
        Some(Stop::Lost(Loss::Evicted { .. }))
    ));
    world.sleep(secs(50)).await;
    let run = || lease.run("job", TTL, async |_| ());
    assert!(matches!(run().await, Ok(Outcome::Skipped(Skip::Busy(Some(_))))));
    assert_eq!(world.repo.resume(&NAME).await.unwrap(), Release::Released);
    assert!(matches!(run().await, Ok(Outcome::Ran(_))));
}

#[tokio::test(start_paused = true)]
async fn a_row_deleted_by_hand_stops_f_and_the_next_tick_runs() {
    let world = World::new();
    let lease = world.pod("a");
    let outcome = lease.run("job", TTL, async |held| {
        world.repo.delete_row(&NAME);
        held.cancelled().await
    });
    assert!(matches!(
        outcome.await.unwrap(),
        Outcome::Dropped {
            stop: Stop::Lost(Loss::Gone),
            ..
        }
    ));
    assert!(matches!(lease.run("job", TTL, async |_| ()).await, Ok(Outcome::Ran(_))));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_of_run_drops_f_and_frees_the_row() {
    struct Gone<'a>(&'a AtomicBool);
    impl Drop for Gone<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let world = World::new();
    let lease = world.pod("a");
    let gone = AtomicBool::new(false);
    let run = lease.run("job", TTL, async |_| {
        let _gone = Gone(&gone);
        std::future::pending::<()>().await;
    });
    assert!(tokio::time::timeout(secs(30), run).await.is_err());
    assert!(gone.load(Ordering::SeqCst));
    world.sleep(Duration::from_millis(1)).await;
    assert!(world.is_free());
}

#[tokio::test(start_paused = true)]
async fn c33_a_guard_dropped_on_a_plain_thread_frees_the_row() {
    let world = World::new();
    let guard = world.pod("a").try_acquire("job", TTL).await.unwrap().unwrap();
    std::thread::spawn(move || drop(guard)).join().unwrap();
    world.sleep(Duration::from_millis(1)).await;
    assert!(world.is_free());
}

#[tokio::test(start_paused = true)]
#[expect(clippy::async_yields_async, reason = "the spawned task is what f leaves behind")]
async fn what_f_spawned_is_told_when_f_has_ended() {
    let world = World::new();
    let lease = world.pod("a");
    let outcome = lease.run("job", TTL, async |held| {
        tokio::spawn(async move { (held.until_lost(std::future::pending::<()>()).await, held) })
    });
    let task = outcome.await.unwrap().into_value().unwrap();
    let (ended, held) = task.await.unwrap();
    let over = ended.unwrap_err();
    assert!(matches!(over.stop, Some(Stop::Lost(Loss::Released))), "{over}");
    assert!(!held.is_live() && held.check().is_err() && held.remaining().is_zero());
    assert!(held.cancellation().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_guard_whose_lease_is_lost_does_not_start_f() {
    let world = World::new();
    let guard = world.pod("a").try_acquire("job", TTL).await.unwrap().unwrap();
    world.repo.delete_row(&NAME);
    guard.held().cancelled().await;
    let outcome = guard.run(async |_| unreachable!("it must not start")).await;
    assert!(
        matches!(
            outcome,
            Outcome::<()>::Dropped {
                stop: Stop::Lost(Loss::Gone),
                ..
            }
        ),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_comes_into_a_shutdown_is_told_of_though_its_name_is_in_use() {
    let world = World::new();
    let (lease, events) = world.observed("a");
    let guard = lease.try_acquire(&NAME, TTL).await.unwrap().unwrap();
    let closing = tokio::spawn({
        let lease = lease.clone();
        async move { lease.shutdown(secs(60)).await }
    });
    world.sleep(secs(1)).await;
    let tick = lease.run(&NAME, TTL, async |_| ()).await.unwrap();
    assert!(matches!(tick, Outcome::Skipped(Skip::ShuttingDown)), "{tick:?}");
    assert!(matches!(guard.release().await, Ok(Release::Released)));
    assert_eq!(closing.await.unwrap(), []);
    drop(lease);
    world.sleep(secs(1)).await;
    let skips = events.iter().filter_map(|event| match event {
        Event::Skipped { skip, .. } => Some(skip.as_str()),
        _ => None,
    });
    assert_eq!(skips.collect::<Vec<_>>(), ["shutting_down"]);
}

//! What the Go package promised, and what a user sees of one tick.

mod world;

use std::time::Duration;

use lease_core::{AcquireError, Lease, MemoryRepo, Options, Outcome, Release, Skip, Stop, Wait};
use world::{NAME, TTL, World, secs};

#[tokio::test(start_paused = true)]
async fn f_runs_iff_acquired_and_its_value_comes_back() {
    let world = World::new();
    let (a, b) = (world.pod("a"), world.pod("b"));
    let value = a
        .with_lease("job", TTL, async |held| {
            assert_eq!(held.name(), &NAME);
            assert!(held.holder().as_str().starts_with("a/"));
            let other = b.with_lease("job", TTL, async |_| Ok::<_, ()>(2)).await;
            assert_eq!(other, Ok(None), "another pod has it");
            Ok::<_, ()>(1)
        })
        .await;
    assert_eq!(value, Ok(Some(1)));
    assert!(world.is_free(), "released on exit");
    assert_eq!(
        b.with_lease("job", TTL, async |_| Err::<(), _>("f's own")).await,
        Err("f's own")
    );
    assert!(world.is_free(), "released on failure");
}

#[tokio::test(start_paused = true)]
async fn every_shape_of_f_is_accepted() {
    async fn plain(held: lease_core::Held) -> i64 {
        held.token().get()
    }
    let world = World::new();
    let job = world.pod("a").job("job", TTL).unwrap();
    let (text, mut count) = (String::from("owned"), 0);
    assert!(job.run(plain).await.into_value().is_some());
    assert!(job.run(|held| async move { held.token() }).await.into_value().is_some());
    assert!(job.run(async |_| count += 1).await.into_value().is_some());
    assert_eq!(
        job.run(async move |_| text).await.into_value().as_deref(),
        Some("owned")
    );
    assert_eq!(count, 1);
    let spawned = tokio::spawn(async move { job.run(async |held| held.token()).await.into_value() });
    assert!(spawned.await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_while_f_runs() {
    let world = World::new();
    let lease = world.pod("a");
    let outcome = lease.run("job", TTL, async |held| {
        world.sleep(TTL * 10).await;
        assert!(held.is_live() && held.stop().is_none());
        assert!(held.remaining() > TTL / 2);
        assert!(held.check().is_ok());
    });
    let Outcome::Ran(ran) = outcome.await.unwrap() else {
        panic!("f ran")
    };
    assert!(ran.stop.is_none());
    assert_eq!(ran.release.unwrap(), Release::Released);
    assert_eq!(world.row().unwrap().token, ran.token.get(), "renewals keep the token");
}

#[tokio::test(start_paused = true)]
async fn c03_pods_with_the_same_label_exclude_each_other() {
    let world = World::new();
    let (one, two) = (world.pod("app-1"), world.pod("app-1"));
    let guard = one.try_acquire("job", TTL).await.unwrap().unwrap();
    let Outcome::Skipped(Skip::Busy(Some(incumbent))) = two.run("job", TTL, async |_| ()).await.unwrap() else {
        panic!("they must exclude each other")
    };
    assert_eq!(incumbent.holder, guard.held().holder().as_str());
    assert_eq!(guard.release().await.unwrap(), Release::Released);
}

#[tokio::test(start_paused = true)]
async fn c04_overlapping_ticks_in_one_process_run_once() {
    let world = World::new();
    let lease = world.pod("a");
    let tick = || lease.run("job", TTL, async |_| world.sleep(secs(1)).await);
    let (first, second) = tokio::join!(tick(), tick());
    assert!(matches!(first, Ok(Outcome::Ran(_))), "{first:?}");
    assert!(matches!(second, Ok(Outcome::Skipped(Skip::BusyHere))), "{second:?}");
    assert!(matches!(tick().await, Ok(Outcome::Ran(_))), "the next tick runs");
}

#[tokio::test(start_paused = true)]
async fn c06_a_thousand_names_are_held_side_by_side_and_released() {
    let world = World::new();
    let lease = world.pod("a");
    let mut guards = Vec::new();
    for number in 0..1_000 {
        guards.push(
            lease
                .try_acquire(format!("job-{number}"), TTL)
                .await
                .unwrap()
                .expect("an unrelated name"),
        );
    }
    world.sleep(TTL * 3).await;
    let now = world.repo.now_us();
    assert!(
        world.repo.snapshot().values().all(|row| row.expires_at > now),
        "all are renewed"
    );
    for guard in guards {
        assert_eq!(guard.release().await.unwrap(), Release::Released);
    }
    let now = world.repo.now_us();
    assert!(
        world.repo.snapshot().values().all(|row| row.expires_at <= now),
        "none is left held"
    );
}

#[tokio::test(start_paused = true)]
async fn c13_a_store_whose_clock_is_an_hour_off_judges_expiry_alone() {
    for off_us in [3_600_000_000, -3_600_000_000] {
        let world = World::new();
        world.repo.step_clock(off_us);
        let (a, b) = (world.pod("a"), world.pod("b"));
        let outcome = a.run("job", TTL, async |held| {
            world.sleep(TTL * 2).await;
            let other = b.run("job", TTL, async |_| ()).await.unwrap();
            assert!(matches!(other, Outcome::Skipped(Skip::Busy(Some(_)))), "{other:?}");
            held.is_live()
        });
        assert_eq!(outcome.await.unwrap().into_value(), Some(true));
        assert!(matches!(b.run("job", TTL, async |_| ()).await, Ok(Outcome::Ran(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn c14_a_minimum_keeps_unaligned_pods_from_running_a_short_job_each() {
    for (at_least_for, wanted) in [(secs(1), 1), (Duration::ZERO, 3)] {
        let world = World::new();
        let mut runs = 0;
        for (pod, delay) in [("a", 0), ("b", 50), ("c", 150)] {
            world.sleep(Duration::from_millis(delay)).await;
            let options = Options::from(TTL).at_least_for(at_least_for);
            let lease = world.pod(pod);
            let outcome = lease.run("job", options, async |_| world.sleep(Duration::from_millis(5)).await);
            runs += u32::from(outcome.await.unwrap().into_value().is_some());
        }
        assert_eq!(runs, wanted, "at_least_for {at_least_for:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c15_options_hold_durations_not_the_time_they_were_made() {
    let world = World::new();
    let job = world.pod("a").job("job", TTL).unwrap();
    world.sleep(secs(600)).await;
    let guard = job.try_acquire().await.unwrap().unwrap();
    assert!(guard.held().remaining() > TTL * 9 / 10);
    assert!(world.row().unwrap().expires_at - world.repo.now_us() > 11_000_000);
}

#[tokio::test(start_paused = true)]
async fn c30_f_that_ends_just_when_a_renewal_is_due_leaves_a_free_row() {
    let world = World::new();
    let lease = world.pod("a");
    for run in 0..1_000u64 {
        let nearly = TTL / 3 + Duration::from_micros(run * 2) - Duration::from_millis(1);
        let outcome = lease
            .run("job", TTL, async |_| world.sleep(nearly).await)
            .await
            .unwrap();
        let Outcome::Ran(ran) = outcome else {
            panic!("run {run} was skipped: {outcome:?}")
        };
        assert_eq!(ran.release.unwrap(), Release::Released, "run {run}");
        assert!(ran.stop.is_none() && world.is_free(), "run {run}");
    }
}

#[tokio::test(start_paused = true)]
async fn c34_a_panic_in_f_frees_the_row_and_goes_on() {
    let world = World::new();
    let lease = world.pod("a");
    let task = tokio::spawn(async move {
        lease
            .run("job", TTL, async |_| panic!("f's own"))
            .await
            .map(|_: Outcome<()>| ())
    });
    let panic = task.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref(), Some(&"f's own"));
    assert!(world.is_free());
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_the_first_poll_frees_the_row_too() {
    let world = World::new();
    let lease = world.pod("a");
    let f = |_| -> std::future::Ready<()> { panic!("no future at all") };
    let task = tokio::spawn(async move { lease.run("job", TTL, f).await.map(|_| ()) });
    assert!(task.await.unwrap_err().is_panic());
    assert!(world.is_free());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ran_keeps_its_minimum_and_one_that_never_ran_does_not() {
    let world = World::new();
    let job = world
        .pod("a")
        .job("job", Options::from(TTL).at_least_for(secs(5)))
        .unwrap();
    let guard = job.try_acquire().await.unwrap().unwrap();
    assert_eq!(guard.release().await.unwrap(), Release::Released);
    assert!(!world.is_free(), "a guard in the user's hands is a job that ran");
    world.sleep(secs(5)).await;
    assert!(world.is_free());
    let never = tokio::spawn(async move { job.run(async |_| ()).await });
    never.abort();
    let _ = never.await;
    world.sleep(secs(1)).await;
    assert!(world.is_free(), "a job that never started keeps nothing");
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_tells_f_and_then_drops_it() {
    let world = World::new();
    let options = Options::from(TTL).time_limit(secs(30));
    let start = world.repo.now_us();
    let lease = world.pod("a");
    let outcome = lease.run("job", options, async |held| {
        let stop = held.cancelled().await;
        assert!(matches!(stop, Stop::TimeLimit));
        assert_eq!((world.repo.now_us() - start) / 1_000, 28_000, "told a margin before");
        world.sleep(secs(3_600)).await;
    });
    assert!(matches!(
        outcome.await.unwrap(),
        Outcome::Dropped {
            stop: Stop::TimeLimit,
            ..
        }
    ));
    assert_eq!((world.repo.now_us() - start) / 1_000, 30_000);
    assert!(world.is_free());
}

#[tokio::test(start_paused = true)]
async fn c42_waiting_for_no_time_is_one_try() {
    let world = World::new();
    let guard = world.pod("a").try_acquire("job", TTL).await.unwrap().unwrap();
    let start = world.repo.now_us();
    let refused = world.pod("b").acquire("job", TTL, Wait::For(Duration::ZERO)).await;
    assert!(
        matches!(
            refused,
            Err(AcquireError::TimedOut {
                last: Skip::Busy(Some(_)),
                ..
            })
        ),
        "{refused:?}"
    );
    assert_eq!(world.repo.now_us(), start);
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_acquire_ends_in_time_or_gets_the_lease() {
    let world = World::new();
    let (a, b) = (world.pod("a"), world.pod("b"));
    let guard = a.try_acquire("job", TTL).await.unwrap().unwrap();
    let start = world.repo.now_us();
    let refused = b.acquire("job", TTL, Wait::For(secs(20))).await;
    assert!(matches!(refused, Err(AcquireError::TimedOut { .. })), "{refused:?}");
    assert_eq!((world.repo.now_us() - start) / 1_000_000, 20);
    let waiting = tokio::spawn(async move { b.acquire("job", TTL, Wait::Forever).await });
    world.sleep(secs(100)).await;
    assert!(!waiting.is_finished());
    guard.release().await.unwrap();
    world.sleep(secs(2)).await;
    let taken = waiting.await.unwrap().unwrap();
    assert!(taken.held().is_live(), "the time of waiting does not count");
}

#[tokio::test(start_paused = true)]
async fn two_waiters_of_one_process_take_turns() {
    let world = World::new();
    let lease = world.pod("a");
    let turn = || async {
        let guard = lease.acquire("job", TTL, Wait::Forever).await.unwrap();
        world.sleep(secs(1)).await;
        guard.release().await.unwrap()
    };
    assert_eq!(
        tokio::join!(turn(), turn(), turn()),
        (Release::Released, Release::Released, Release::Released)
    );
}

#[tokio::test]
async fn mistakes_are_found_when_the_job_is_made() {
    let lease = Lease::new(MemoryRepo::new());
    assert_eq!(
        lease.job("", TTL).unwrap_err().to_string(),
        "a lease name must not be empty"
    );
    assert_eq!(
        lease.job("x".repeat(129), TTL).unwrap_err().to_string(),
        "a lease name has 129 bytes, at most 128 are allowed"
    );
    assert!(lease.job("a\u{0}b", TTL).is_err() && lease.job("job ", TTL).is_err());
    assert!(lease.job("job", Duration::ZERO).is_err() && lease.job("job", Duration::MAX).is_err());
    assert!(lease.job("job", Options::from(TTL).renew_every(TTL)).is_err());
    assert!(matches!(
        lease.try_acquire("", TTL).await,
        Err(AcquireError::Invalid(_))
    ));
    assert!(matches!(
        lease.acquire("", TTL, Wait::Forever).await,
        Err(AcquireError::Invalid(_))
    ));
    assert!(lease.run("", TTL, async |_| ()).await.is_err());
}

#[tokio::test]
#[should_panic(expected = "with_lease: ttl is 1ms, but must be at least 100ms")]
async fn with_lease_panics_on_a_mistake_rather_than_never_run() {
    let lease = Lease::new(MemoryRepo::new());
    let _ = lease
        .with_lease("job", Duration::from_millis(1), async |_| Ok::<_, ()>(()))
        .await;
}

#[test]
fn the_label_is_what_the_user_said_or_host_and_pid() {
    let lease = Lease::new(MemoryRepo::new());
    assert!(lease.holder().as_str().ends_with(&format!("-{}", std::process::id())));
    let label = lease_core::Label::new("pod-7").unwrap();
    assert_eq!(Lease::with_holder(MemoryRepo::new(), label.clone()).holder(), &label);
}

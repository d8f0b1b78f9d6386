//! The keeper when the store fails: what it tells f, when each call returns, and that two are never inside.

mod world;

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use lease_core::{
    Clock, Event, Lease, Loss, MemoryRepo, Moment, OnLost, Operation, Options, Outcome, Release, RepoErrorKind, Skip,
    Stop, TokioClock, Wait,
};
use lease_testkit::{Chances, Fault, FaultyRepo, Overlap};
use tokio::runtime::Handle;
use world::{NAME, TTL, World, ms, secs};

#[tokio::test(start_paused = true)]
async fn c10_a_store_that_goes_silent_stops_f_in_time_and_every_call_returns() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    let start = world.millis();
    let outcome = lease.run("job", TTL, async |held| {
        for operation in [Operation::Acquire, Operation::Renew, Operation::Release] {
            faults.on(operation, Fault::Hang);
        }
        let stop = held.cancelled().await;
        assert_eq!(world.millis() - start, 10_000, "told a margin before the row expires");
        assert!(held.is_live(), "and there is time to end in");
        world.sleep(secs(3_600)).await;
        drop(stop);
    });
    let Outcome::Dropped {
        stop: Stop::Overdue {
            last_error: Some(error),
        },
        ..
    } = outcome.await.unwrap()
    else {
        panic!("dropped, and told what the renewals ran into")
    };
    assert_eq!((error.kind(), error.lease()), (RepoErrorKind::Timeout, Some(&NAME)));
    assert!(
        world.millis() - start <= 11_880 + 6_250,
        "the release is given up after its limit"
    );
    let before = world.millis();
    let tick = lease.run("job", TTL, async |_| ()).await.unwrap();
    assert!(matches!(tick, Outcome::Skipped(Skip::Store(_))), "{tick:?}");
    assert!(world.millis() - before <= 2_500, "so is the next tick's acquire");
}

#[tokio::test(start_paused = true)]
async fn c16_a_grant_that_comes_too_late_starts_nothing_and_is_released() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    faults.next_acquire(Fault::DelayReply(TTL * 2));
    let tick = lease
        .run("job", TTL, async |_| unreachable!("f must not start"))
        .await
        .unwrap();
    assert!(matches!(tick, Outcome::<()>::Skipped(Skip::Store(_))), "{tick:?}");
    world.sleep(ms(1)).await;
    assert!(world.is_free());
}

#[tokio::test(start_paused = true)]
async fn c16_a_grant_that_comes_late_is_renewed_before_f_starts() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    faults.next_acquire(Fault::DelayReply(secs(1)));
    let options = Options::from(TTL).renew_every(ms(500));
    let outcome = lease.run("job", options, async |held| {
        assert_eq!(faults.calls(Operation::Renew), 1);
        assert!(held.remaining() > secs(11));
    });
    assert!(matches!(outcome.await.unwrap(), Outcome::Ran(_)));
}

/// Found by the simulation: a late grant has its renewal decided in the turn in which the keeper hears that nobody waits any more, and gives
/// it back.
#[tokio::test(start_paused = true)]
async fn no_renewal_that_waited_for_company_follows_a_release() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    let late = secs(1);
    faults.next_acquire(Fault::DelayReply(late));
    let patience = world.sleep(late);
    let options = Options::from(TTL).renew_every(ms(500));
    tokio::select! {
        biased;
        () = patience => {}
        asked = lease.try_acquire("job", options) => unreachable!("{asked:?}"),
    }
    world.sleep(TTL).await;
    assert_eq!(
        (faults.calls(Operation::Renew), faults.calls(Operation::Release)),
        (0, 1)
    );
    assert!(world.is_free());
}

#[tokio::test(start_paused = true)]
async fn c18_two_failed_renewals_are_two_warnings_and_no_loss() {
    let world = World::new();
    let faults = FaultyRepo::with_clock(world.store.clone(), world.clock);
    let (sender, events) = channel();
    let observer = move |event: &Event| drop(sender.send(event.clone()));
    let lease = world.builder("a", faults.clone()).observer(observer).build();
    let outcome = lease.run("job", TTL, async |held| {
        faults.next_renew(Fault::Fails(RepoErrorKind::Unavailable));
        faults.next_renew(Fault::ReplyLost);
        world.sleep(TTL * 2).await;
        held.stop().is_none()
    });
    assert_eq!(outcome.await.unwrap().into_value(), Some(true));
    drop(lease);
    world.sleep(secs(1)).await;
    let told: Vec<Event> = std::iter::from_fn(|| events.recv_timeout(secs(5)).ok()).collect();
    let warnings = told
        .iter()
        .filter(|event| matches!(event, Event::RenewFailed { .. }))
        .count();
    assert_eq!(warnings, 2, "{told:?}");
    assert!(
        !told
            .iter()
            .any(|event| matches!(event, Event::Stopped { .. } | Event::KeeperDied)),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn c19_a_holder_that_cannot_renew_is_gone_before_the_next_one_starts() {
    let world = World::new();
    let overlap = Overlap::new();
    let (a, faults) = world.pod("a");
    let (b, _) = world.pod("b");
    let job = a.job("job", TTL).unwrap();
    let sections = overlap.clone();
    let first = tokio::spawn(async move {
        let f = async |held: lease_core::Held| {
            let _section = sections.enter("job", held.token());
            pending::<()>().await;
        };
        job.run(f).await
    });
    world.sleep(secs(1)).await;
    faults.on(Operation::Renew, Fault::Fails(RepoErrorKind::Unavailable));
    let guard = b.acquire("job", TTL, Wait::Forever).await.unwrap();
    drop(overlap.enter("job", guard.held().token()));
    assert!(matches!(
        first.await.unwrap(),
        Outcome::Dropped {
            stop: Stop::Overdue { .. },
            ..
        }
    ));
    overlap.finish().unwrap();
    assert_eq!(
        world.row().unwrap().holder,
        guard.held().holder().as_str(),
        "its release left the successor's row"
    );
}

#[tokio::test(start_paused = true)]
async fn c22_after_a_pause_past_expiry_f_is_not_polled_again_and_the_next_tick_runs() {
    let world = World::new();
    let (lease, _) = world.pod("a");
    let mut polls = 0;
    let outcome = lease.run("job", TTL, |held| {
        let polls = &mut polls;
        poll_fn(move |cx| {
            *polls += 1;
            assert!(held.is_live(), "polled after drop_at");
            cx.waker().wake_by_ref();
            if *polls == 3 {
                // Nothing runs while time jumps: as if the process had been stopped and continued.
                let advance = std::pin::pin!(tokio::time::advance(TTL * 3));
                let _ = advance.poll(cx);
            }
            Poll::<()>::Pending
        })
    });
    assert!(matches!(outcome.await.unwrap(), Outcome::Dropped { .. }));
    assert_eq!(polls, 3);
    assert!(matches!(lease.run("job", TTL, async |_| ()).await, Ok(Outcome::Ran(_))));
}

#[tokio::test(start_paused = true)]
async fn c23_a_value_and_a_loss_are_both_in_the_outcome() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    let options = Options::from(TTL).on_lost(OnLost::SignalOnly);
    let outcome = lease.run("job", options, async |held| {
        world.store.delete_row(&NAME);
        held.cancelled().await;
        7
    });
    let Outcome::Ran(ran) = outcome.await.unwrap() else {
        panic!("f was told to go on")
    };
    assert_eq!((ran.value, ran.release.unwrap()), (7, Release::NotHeld));
    assert!(matches!(ran.stop, Some(Stop::Lost(Loss::Gone))));
    let outcome = lease.run("job", TTL, async |_| {
        faults.on(Operation::Release, Fault::Fails(RepoErrorKind::Unavailable));
        7
    });
    let Outcome::Ran(ran) = outcome.await.unwrap() else {
        panic!("f ran")
    };
    assert_eq!(ran.value, 7);
    assert_eq!(ran.release.unwrap_err().kind(), RepoErrorKind::Unavailable);
}

/// The machine's clock, but so many thousandths slow.
#[derive(Clone, Copy)]
struct Slow {
    real: TokioClock,
    start: Moment,
    thousandths: u32,
}

impl Clock for Slow {
    fn now(&self) -> Moment {
        let elapsed = self.real.now().since(self.start);
        self.start + (elapsed - elapsed * self.thousandths / 1_000)
    }

    fn sleep_until(&self, at: Moment) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let real = at.since(self.start) * 1_000 / (1_000 - self.thousandths);
        self.real.sleep_until(self.start + real)
    }
}

/// How long before the row was free the last poll of an f began that ignores its cancellation.
async fn left_at_the_last_poll(thousandths: u32) -> i64 {
    let world = World::new();
    let slow = Slow {
        real: world.clock,
        start: world.clock.now(),
        thousandths,
    };
    let faults = FaultyRepo::with_clock(world.store.clone(), world.clock);
    let lease = Lease::builder(faults.clone())
        .clock(slow)
        .keeper_on(Handle::current())
        .build();
    faults.on(Operation::Renew, Fault::Hang);
    let last_poll = Mutex::new(0);
    let outcome = lease.run("job", TTL, async |_| {
        loop {
            *last_poll.lock().unwrap() = world.row().unwrap().expires_at - world.store.now_us();
            world.sleep(ms(1)).await;
        }
    });
    assert!(matches!(outcome.await.unwrap(), Outcome::<()>::Dropped { .. }));
    *last_poll.lock().unwrap()
}

#[tokio::test(start_paused = true)]
async fn c45_with_a_clock_within_the_drift_no_poll_begins_after_the_row_is_free() {
    assert!(left_at_the_last_poll(0).await > 100_000);
    assert!(left_at_the_last_poll(9).await > 0);
    assert!(
        left_at_the_last_poll(20).await < 0,
        "beyond the drift this test must notice"
    );
}

#[tokio::test(start_paused = true)]
async fn one_slow_statement_delays_no_other_lease() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    let slow = lease.try_acquire("slow", TTL).await.unwrap().unwrap();
    // So much later that it is not renewed together with that one.
    world.sleep(ms(2_100)).await;
    let quick = lease.try_acquire("quick", TTL).await.unwrap().unwrap();
    faults.next_renew(Fault::Hang);
    faults.next_renew(Fault::Delay(ms(10)));
    world.sleep(ms(4_200)).await;
    assert!(quick.held().remaining() > secs(11), "renewed on time");
    assert!(slow.held().remaining() < secs(6), "this one waits for its answer");
    drop((slow, quick));
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_hangs_costs_its_limit_and_no_lease() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    let one = lease.try_acquire("one", TTL).await.unwrap().unwrap();
    let two = lease.try_acquire("two", TTL).await.unwrap().unwrap();
    faults.next_renew(Fault::Hang);
    world.sleep(ms(6_400)).await;
    for guard in [&one, &two] {
        assert!(guard.held().remaining() < secs(6), "both wait for the answer");
    }
    // After the limit of two seconds and a quarter of it, and a twelfth of the ttl with its jitter.
    world.sleep(ms(1_500)).await;
    for guard in [&one, &two] {
        assert!(guard.held().remaining() > secs(11) && guard.held().stop().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_the_release_and_no_longer_than_its_limit() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    let guard = lease.try_acquire("job", TTL).await.unwrap().unwrap();
    faults.on(Operation::Release, Fault::Hang);
    drop(guard);
    let start = world.millis();
    assert_eq!(lease.shutdown(secs(1)).await, []);
    assert!(
        (5_000..=6_250).contains(&(world.millis() - start)),
        "{} ms",
        world.millis() - start
    );
}

/// Releases that hang had all places of a pool for five seconds, and no lease of a short ttl was renewed meanwhile.
#[tokio::test(start_paused = true)]
async fn a_release_that_hangs_has_its_connection_for_no_longer_than_a_ttl() {
    let world = World::new();
    let (lease, faults) = world.pod("a");
    let guard = lease.try_acquire("job", secs(2)).await.unwrap().unwrap();
    faults.on(Operation::Release, Fault::Hang);
    let start = world.millis();
    let error = guard.release().await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Timeout);
    assert!(
        (2_000..=2_500).contains(&(world.millis() - start)),
        "{} ms",
        world.millis() - start
    );
}

/// A clock that a suspend moves on while timers stand still.
#[derive(Clone)]
struct Suspended {
    timers: TokioClock,
    by: Arc<Mutex<Duration>>,
}

impl Clock for Suspended {
    fn now(&self) -> Moment {
        self.timers.now() + *self.by.lock().unwrap()
    }

    fn sleep_until(&self, at: Moment) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.timers.sleep_until(self.timers.now() + at.since(self.now()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspend_is_noticed_within_a_quarter_of_the_margin() {
    let world = World::new();
    let clock = Suspended {
        timers: world.clock,
        by: Arc::default(),
    };
    let faults = FaultyRepo::with_clock(world.store.clone(), world.clock);
    let lease = Lease::builder(faults)
        .clock(clock.clone())
        .keeper_on(Handle::current())
        .build();
    let guard = lease.try_acquire("job", TTL).await.unwrap().unwrap();
    world.sleep(ms(100)).await;
    *clock.by.lock().unwrap() = TTL * 3;
    let awake = world.millis();
    guard.held().cancelled().await;
    assert!(
        world.millis() - awake <= 501,
        "a margin is two seconds: {} ms",
        world.millis() - awake
    );
}

/// Pods that tick on one name while their calls fail by chance.
async fn pods_under_faults(seed: u64) -> u64 {
    let world = World::new();
    let overlap = Overlap::new();
    let chances = Chances {
        fails: 8,
        reply_lost: 8,
        delay: 20,
        hang: 4,
        longest_delay: secs(3),
    };
    let pods = (0..4).map(|pod| {
        let faults = FaultyRepo::with_clock(world.store.clone(), world.clock).seeded(seed + pod, chances);
        let lease = world.builder("pod", faults).build();
        let (overlap, clock) = (overlap.clone(), world.clock);
        tokio::spawn(async move {
            let end = clock.now() + secs(1_200);
            for tick in 0u64.. {
                if clock.now() >= end {
                    break;
                }
                let length = Duration::from_millis((tick * 977 + pod * 331) % 30_000);
                let f = async |held: lease_core::Held| {
                    let _section = overlap.enter("job", held.token());
                    clock.sleep_until(clock.now() + length).await;
                };
                drop(lease.run("job", TTL, f).await);
                clock.sleep_until(clock.now() + secs(1)).await;
            }
        })
    });
    for pod in pods.collect::<Vec<_>>() {
        pod.await.unwrap();
    }
    overlap
        .finish()
        .unwrap_or_else(|violation| panic!("seed {seed}: {violation}"))
        .sections
}

#[tokio::test(start_paused = true)]
async fn whatever_fails_two_pods_are_never_inside_together() {
    let mut sections = 0;
    for seed in 0..25 {
        sections += pods_under_faults(seed * 1_000).await;
    }
    assert!(sections > 1_000, "only {sections} tenures");
}

#[tokio::test]
async fn the_real_clock_keeps_a_lease_and_loses_it_as_the_moved_one_does() {
    // A ttl of a second and a half leaves every step a quarter of a second: far more than a busy machine takes.
    let ttl = ms(1_500);
    let faults = FaultyRepo::new(MemoryRepo::new());
    let lease = Lease::new(faults.clone());
    let outcome = lease.run("job", ttl, async |held| {
        let kept = held.until_lost(pending::<()>());
        assert!(
            tokio::time::timeout(ttl * 2, kept).await.is_err(),
            "renewed for two ttl"
        );
        faults.on(Operation::Renew, Fault::Hang);
        held.cancelled().await
    });
    assert!(matches!(
        outcome.await.unwrap().into_value(),
        Some(Stop::Overdue { .. })
    ));
}

//! The clocks that tests move.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures_util::FutureExt;
use lease_core::Clock;
use lease_testkit::{ManualClock, RunningClock};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn manual_time_moves_only_when_told() {
    let clock = ManualClock::new();
    let start = clock.now();
    assert_eq!(clock.now(), start);
    clock.advance(SECOND);
    assert_eq!(clock.clone().now().since(start), SECOND, "clones show the same time");
}

#[test]
fn manual_sleepers_wake_when_their_time_has_come() {
    let clock = ManualClock::new();
    let mut early = clock.sleep_until(clock.now() + SECOND);
    let mut late = clock.sleep_until(clock.now() + 2 * SECOND);
    assert_eq!(
        (early.as_mut().now_or_never(), late.as_mut().now_or_never()),
        (None, None)
    );
    assert_eq!(clock.sleepers(), 2);
    clock.advance(SECOND);
    assert_eq!(
        (early.as_mut().now_or_never(), late.as_mut().now_or_never()),
        (Some(()), None)
    );
    assert_eq!(clock.sleepers(), 1);
    drop(late);
    assert_eq!(clock.sleepers(), 0, "a sleeper that is dropped is gone");
    assert_eq!(
        clock.sleep_until(clock.now()).now_or_never(),
        Some(()),
        "what is past needs no sleep"
    );
}

#[test]
fn sleepers_on_another_thread_are_woken_and_can_be_waited_for() {
    let clock = ManualClock::new();
    let sleeper = clock.clone();
    let end = clock.now() + SECOND;
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(sleeper.sleep_until(end));
        sleeper.now()
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(clock.until_asleep(1));
    clock.advance(3 * SECOND);
    assert_eq!(thread.join().unwrap(), end + 2 * SECOND);
}

/// Case C45 needs a holder whose clock is 0.9 % slow.
#[test]
fn clocks_of_one_world_run_at_their_own_rates() {
    let world = ManualClock::new();
    world.advance(SECOND);
    let (slow, fast) = (world.at_rate(991_000), world.at_rate(1_010_000));
    let start = world.now();
    assert_eq!((slow.now(), fast.now()), (start, start), "they start together");
    let mut sleep = slow.sleep_until(start + 1000 * SECOND);
    world.advance(1000 * SECOND);
    assert_eq!(slow.now().since(start), 991 * SECOND);
    assert_eq!(fast.now().since(start), 1010 * SECOND);
    assert_eq!(sleep.as_mut().now_or_never(), None, "the slow clock is not there yet");
    slow.advance(10 * SECOND);
    assert_eq!(sleep.as_mut().now_or_never(), Some(()));
    let slower = slow.at_rate(500_000);
    assert_eq!(
        slower.now(),
        slow.now(),
        "a clock made from another starts from what that shows"
    );
}

/// Case C50 needs a keeper that dies.
#[test]
fn the_next_call_fails_once_when_told() {
    let clock = ManualClock::new();
    clock.fail_next_sleep();
    assert_eq!(clock.now(), ManualClock::START, "only the sleep fails");
    let at = clock.now();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(clock.sleep_until(at)))).is_err());
    assert_eq!(clock.sleep_until(at).now_or_never(), Some(()), "and only once");
    clock.at_rate(1).fail_next_now();
    assert_eq!(clock.now(), at, "another machine's clock is not concerned");
    clock.clone().fail_next_now();
    assert!(catch_unwind(AssertUnwindSafe(|| clock.now())).is_err());
    assert_eq!(clock.now(), at);
}

#[tokio::test]
async fn running_time_goes_on_and_can_be_moved() {
    let clock = RunningClock::new();
    let start = clock.now();
    clock.sleep_until(start + Duration::from_millis(5)).await;
    assert!(
        clock.now().since(start) >= Duration::from_millis(5),
        "it runs by itself"
    );

    let hour = 3600 * SECOND;
    let sleeper = clock.clone();
    let sleep = tokio::spawn(async move { sleeper.sleep_until(start + hour).await });
    tokio::task::yield_now().await;
    assert!(!sleep.is_finished());
    clock.advance(hour);
    sleep.await.unwrap();
    assert!(clock.now().since(start) >= hour);
}

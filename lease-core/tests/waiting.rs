//! Who waits for a lease: in which order, how often the store is asked, and what ends the waiting.

mod world;

use std::time::Duration;

use futures_util::future::join_all;
use lease_core::{AcquireError, Clock, Lease, Skip, Wait};
use tokio::sync::Mutex;
use world::{NAME, TTL, World, secs};

const WORK: Duration = Duration::from_millis(10);

/// Each waits for the lease and works under it; answers how long each waited.
async fn all_wait(world: &World, pods: &[Lease], each: usize) -> Vec<Duration> {
    let inside = Mutex::new(());
    let began = world.clock.now();
    let waiting = pods
        .iter()
        .flat_map(|pod| (0..each).map(move |_| pod))
        .map(async |pod| {
            let guard = pod.acquire(&NAME, TTL, Wait::Forever).await.unwrap();
            let waited = world.clock.now().since(began);
            let alone = inside.try_lock().expect("never two inside");
            world.sleep(WORK).await;
            drop(alone);
            guard.release().await.unwrap();
            waited
        });
    join_all(waiting).await
}

/// Nobody starves: who waits longest waits no longer than three times as long as all do on average.
fn fair(mut waits: Vec<Duration>) {
    waits.sort();
    let mean = waits.iter().sum::<Duration>() / u32::try_from(waits.len()).unwrap();
    let longest = waits[waits.len() - 1];
    assert!(longest <= mean * 3, "one waited {longest:?}, all on average {mean:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_tasks_of_one_process_get_it_in_turn() {
    let world = World::new();
    let waits = all_wait(&world, &[world.pod("a")], 100).await;
    assert!(waits.is_sorted(), "in the order of coming");
    // One after the other, with next to nothing in between.
    assert!(waits[99] < WORK * 100 + Duration::from_millis(300), "{:?}", waits[99]);
    fair(waits);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_tasks_of_ten_pods_all_get_it() {
    let world = World::new();
    let pods: Vec<Lease> = (0..10).map(|number| world.pod(&format!("pod-{number}"))).collect();
    fair(all_wait(&world, &pods, 10).await);
    assert!(world.is_free());
}

#[tokio::test(start_paused = true)]
async fn only_the_first_of_a_process_asks_the_store() {
    let world = World::new();
    let (other, pod) = (world.pod("other"), world.pod("a"));
    let held = other.try_acquire(&NAME, TTL).await.unwrap().unwrap();
    let waiting = join_all((0..100).map(|_| pod.acquire(&NAME, TTL, Wait::Forever)));
    assert!(tokio::time::timeout(secs(30), waiting).await.is_err(), "it is held");
    // Once a second at the least, twice at the most.
    let asked = world.tries.lock().unwrap().len();
    assert!((25..=62).contains(&asked), "{asked} tries");
    held.release().await.unwrap();
    assert!(
        pod.try_acquire(&NAME, TTL).await.unwrap().is_some(),
        "those who left hold nothing up"
    );
}

#[tokio::test(start_paused = true)]
async fn a_hint_wakes_who_waits_at_once() {
    let world = World::new();
    let (a, b) = (world.pod("a"), world.pod("b"));
    let held = a.try_acquire(&NAME, TTL).await.unwrap().unwrap();
    let release = async {
        world.sleep(secs(5)).await;
        let at = world.clock.now();
        held.release().await.unwrap();
        at
    };
    let waiting = async {
        let guard = b.acquire(&NAME, TTL, Wait::Forever).await.unwrap();
        (guard, world.clock.now())
    };
    let (released_at, (guard, granted_at)) = tokio::join!(release, waiting);
    let took = granted_at.since(released_at);
    assert!(took <= Duration::from_millis(5), "{took:?}");
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiting_in_the_process_ends_with_its_time_and_with_a_shutdown() {
    let world = World::new();
    let pod = world.pod("a");
    let held = pod.try_acquire(&NAME, TTL).await.unwrap().unwrap();
    let began = world.clock.now();
    let late = pod.acquire(&NAME, TTL, Wait::For(secs(3))).await;
    assert!(
        matches!(
            late,
            Err(AcquireError::TimedOut {
                last: Skip::BusyHere,
                ..
            })
        ),
        "{late:?}"
    );
    assert_eq!(world.clock.now().since(began).as_secs(), 3);
    let now = pod.acquire(&NAME, TTL, Wait::For(Duration::ZERO)).await;
    assert!(matches!(now, Err(AcquireError::TimedOut { .. })), "{now:?}");

    let waiting = pod.acquire(&NAME, TTL, Wait::Forever);
    let shutdown = async {
        world.sleep(secs(1)).await;
        let at = world.clock.now();
        let (forsaken, _) = tokio::join!(pod.shutdown(secs(10)), held.release());
        assert!(forsaken.is_empty());
        at
    };
    let (waited, at) = tokio::join!(async { (waiting.await, world.clock.now()) }, shutdown);
    assert!(matches!(waited.0, Err(AcquireError::ShuttingDown)), "{:?}", waited.0);
    assert!(waited.1.since(at) < Duration::from_millis(10));
}

/// The time of waiting is no part of the time of holding.
#[tokio::test(start_paused = true)]
async fn who_waited_long_holds_as_long_as_any() {
    let world = World::new();
    let (a, b) = (world.pod("a"), world.pod("b"));
    let held = a.try_acquire(&NAME, TTL).await.unwrap().unwrap();
    let release = async {
        world.sleep(TTL * 5).await;
        held.release().await.unwrap();
    };
    let ((), guard) = tokio::join!(release, b.acquire(&NAME, TTL, Wait::For(TTL * 6)));
    let guard = guard.unwrap();
    assert!(guard.held().remaining() > TTL * 9 / 10);
    world.sleep(TTL * 10).await;
    assert!(guard.held().is_live());
}

/// C39: a herd after an outage.
#[tokio::test(start_paused = true)]
async fn c39_two_hundred_who_wait_together_spread_their_tries_and_none_starves() {
    let world = World::new();
    let holder = world.pod("holder");
    let held = holder.try_acquire(&NAME, TTL).await.unwrap().unwrap();
    let pods: Vec<Lease> = (0..200).map(|number| world.pod(&format!("pod-{number}"))).collect();
    let waiting = join_all(pods.iter().map(|pod| pod.acquire(&NAME, TTL, Wait::Forever)));
    assert!(tokio::time::timeout(secs(8), waiting).await.is_err());
    // In tenths of a second, once all had their first try together: no tenth has more than a third of what a second has.
    let mut tenths = [0_u32; 100];
    let tries = std::mem::take(&mut *world.tries.lock().unwrap());
    for at in &tries {
        tenths[usize::try_from(at.since(tries[0]).as_millis() / 100).unwrap()] += 1;
    }
    let (all, most) = (
        tenths[20..70].iter().sum::<u32>(),
        *tenths[20..70].iter().max().unwrap(),
    );
    assert!((5 * 190..=5 * 420).contains(&all), "{all} tries in five seconds");
    assert!(most <= 100, "{most} tries in one tenth of a second: {tenths:?}");
    held.release().await.unwrap();
    fair(all_wait(&world, &pods, 1).await);
}

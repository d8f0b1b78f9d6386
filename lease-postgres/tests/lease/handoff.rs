//! From one pod's release to the next one's work, when both [`notify`](lease_postgres::PostgresRepo::notify).
//!
//! Who polls asks again half a second after his last try at the earliest. In each round the release comes 0.3 s after the try, so
//! that polling would take at least 0.2 s; told, it takes milliseconds. The median is for a machine that is busy now and then.

use std::time::Duration;

use futures_util::future::join_all;
use lease_core::{Lease, Wait};
use lease_postgres::PostgresRepo;
use lease_testkit::Overlap;
use tokio::runtime::Builder;

use crate::child::{Part, Process};
use crate::world::{World, ms, now, secs, sleep, within};

/// So long that nobody waits for an expiry, and no poll comes early.
const TTL: Duration = secs(60);
const TOLD: Duration = ms(150);

async fn pod(url: &str) -> Lease {
    Lease::new(PostgresRepo::connect(url).await.unwrap().notify(true))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_release_in_another_process_wakes_who_waits_at_once() {
    if let Some(part) = Part::of_this_process() {
        return holds_when_told(part).await;
    }
    let world = World::shared().await;
    let test = "handoff::a_release_in_another_process_wakes_who_waits_at_once";
    let mut other = Process::start(&[], test, world.database.url(), "");
    let lease = pod(world.database.url()).await;
    let mut took = Vec::new();
    for _ in 0..8 {
        other.go_on("take it");
        other.says("taken");
        let release = async {
            sleep(ms(300)).await;
            let at = now();
            other.go_on("release it");
            at
        };
        let waiting = async { (lease.acquire("job", TTL, Wait::Forever).await.unwrap(), now()) };
        let (released_at, (guard, granted_at)) = tokio::join!(release, waiting);
        took.push(granted_at.since(released_at));
        guard.release().await.unwrap();
    }
    assert!(median(took.clone()) < TOLD, "{took:?}");
}

async fn holds_when_told(part: Part) {
    let lease = pod(&part.url).await;
    loop {
        Part::waits();
        let guard = lease.acquire("job", TTL, Wait::Forever).await.unwrap();
        Part::say("taken");
        Part::waits();
        guard.release().await.unwrap();
    }
}

/// The connection that hears is driven by the keeper, wherever the waiting one is.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn who_waits_on_a_runtime_without_io_is_woken_too() {
    let world = World::shared().await;
    let (holder, waiter) = (pod(world.database.url()).await, pod(world.database.url()).await);
    let mut took = Vec::new();
    for _ in 0..5 {
        let held = holder.acquire("job", TTL, Wait::Forever).await.unwrap();
        let waiter = waiter.clone();
        let waiting = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().build().unwrap();
            let guard = runtime.block_on(waiter.acquire("job", TTL, Wait::Forever)).unwrap();
            (guard, now())
        });
        sleep(ms(300)).await;
        let released_at = now();
        held.release().await.unwrap();
        let (guard, granted_at) = tokio::task::spawn_blocking(|| waiting.join().unwrap()).await.unwrap();
        took.push(granted_at.since(released_at));
        guard.release().await.unwrap();
    }
    assert!(median(took.clone()) < TOLD, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn of_many_pods_that_are_woken_one_gets_it_and_the_others_wait_on() {
    const PODS: usize = 8;
    const TIMES: usize = 4;
    let world = World::shared().await;
    let overlap = Overlap::new();
    let pods = join_all((0..PODS).map(|_| pod(world.database.url()))).await;
    let working = pods.iter().map(async |pod| {
        for _ in 0..TIMES {
            let guard = pod.acquire("job", TTL, Wait::Forever).await.unwrap();
            let inside = overlap.enter("job", guard.held().token());
            sleep(ms(5)).await;
            drop(inside);
            guard.release().await.unwrap();
        }
    });
    within(secs(60), join_all(working)).await;
    assert_eq!(overlap.finish().unwrap().sections, (PODS * TIMES) as u64);
}

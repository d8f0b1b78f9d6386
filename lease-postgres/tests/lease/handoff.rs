//! From one pod's release to the next one's work, when both [`notify`](lease_postgres::PostgresRepo::notify).
//!
//! That a hint makes who waits try at once is shown by lease-core's tests, on a clock that they move. Here it is shown that the hint
//! comes: not how soon, which `cargo xtask measure handoff` tells. On a busy machine a poll may overtake it, so there are
//! several rounds, of which one is enough; without hints there is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use lease_core::{Acquire, Claim, Guard, Lease, LeaseName, Release, Renew, Repo, RepoError, Wait};
use lease_postgres::PostgresRepo;
use lease_testkit::Overlap;
use tokio::runtime::Builder;

use crate::child::{Part, Process};
use crate::world::{World, ms, secs, sleep, within};

/// So long that nobody waits for an expiry.
const TTL: Duration = secs(60);
const ROUNDS: usize = 40;

async fn pod(url: &str) -> Lease {
    Lease::new(PostgresRepo::connect(url).await.unwrap().notify(true))
}

/// The repo, with a count of the hints that it gave.
struct Hinting {
    repo: PostgresRepo,
    hints: Arc<AtomicUsize>,
}

impl Repo for Hinting {
    async fn acquire(&self, claim: &Claim) -> Result<Acquire, RepoError> {
        self.repo.acquire(claim).await
    }

    async fn renew(&self, claim: &Claim) -> Result<Renew, RepoError> {
        self.repo.renew(claim).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        self.repo.release(claim).await
    }

    async fn freed(&self, name: &LeaseName) {
        self.repo.freed(name).await;
        self.hints.fetch_add(1, Ordering::SeqCst);
    }
}

struct Waiter {
    lease: Lease,
    hints: Arc<AtomicUsize>,
}

impl Waiter {
    async fn new(url: &str) -> Self {
        let (repo, hints) = (PostgresRepo::connect(url).await.unwrap().notify(true), Arc::default());
        let lease = Lease::new(Hinting {
            repo,
            hints: Arc::clone(&hints),
        });
        Self { lease, hints }
    }

    /// Whether a hint came between now and the grant.
    async fn is_told(&self, waiting: impl Future<Output = Guard>) -> bool {
        let before = self.hints.load(Ordering::SeqCst);
        let guard = waiting.await;
        let told = self.hints.load(Ordering::SeqCst) > before;
        guard.release().await.unwrap();
        told
    }
}

/// From that round on: in the first one it is told that it listens.
const FIRST: usize = 1;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_release_in_another_process_wakes_who_waits() {
    if let Some(part) = Part::of_this_process() {
        return holds_when_told(part).await;
    }
    let world = World::shared().await;
    let test = "handoff::a_release_in_another_process_wakes_who_waits";
    let mut other = Process::start(&[], test, world.database.url(), "");
    let waiter = Waiter::new(world.database.url()).await;
    for round in 0..ROUNDS {
        other.go_on("take it");
        other.says("taken");
        let lease = waiter.lease.clone();
        let waiting = tokio::spawn(async move { lease.acquire("job", TTL, Wait::Forever).await.unwrap() });
        sleep(ms(300)).await;
        let told = waiter.is_told(async {
            other.go_on("release it");
            waiting.await.unwrap()
        });
        if told.await && round >= FIRST {
            return;
        }
    }
    panic!("not once was it told");
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
    let holder = pod(world.database.url()).await;
    let waiter = Waiter::new(world.database.url()).await;
    for round in 0..ROUNDS {
        let held = holder.acquire("job", TTL, Wait::Forever).await.unwrap();
        let lease = waiter.lease.clone();
        let waiting = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().build().unwrap();
            runtime.block_on(lease.acquire("job", TTL, Wait::Forever)).unwrap()
        });
        sleep(ms(300)).await;
        let told = waiter.is_told(async {
            held.release().await.unwrap();
            tokio::task::spawn_blocking(|| waiting.join().unwrap()).await.unwrap()
        });
        if told.await && round >= FIRST {
            return;
        }
    }
    panic!("not once was it told");
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

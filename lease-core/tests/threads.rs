//! Where threads and the real clock are the point.
//!
//! A ttl of two seconds leaves each step many times what a busy machine takes for it.

use std::env;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use lease_core::{
    Acquire, AcquireError, BootClock, Claim, Clock, Event, Lease, LeaseName, MemoryRepo, Moment, Outcome, Release,
    Renew, Repo, RepoError, Skip, Stop, Wait,
};

const TTL: Duration = Duration::from_secs(2);

fn is_free(repo: &MemoryRepo) -> bool {
    repo.snapshot().values().all(|row| row.expires_at <= repo.now_us())
}

/// Waits for something that another thread does soon.
fn eventually(what: &str, done: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: not within ten seconds");
}

#[test]
fn c20_work_that_blocks_every_worker_keeps_its_lease() {
    let repo = MemoryRepo::new();
    let lease = Lease::new(repo.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let outcome = runtime.block_on(async {
        let blocker = tokio::spawn(async { std::thread::sleep(TTL * 2) });
        let outcome = tokio::spawn(async move {
            lease
                .run("job", TTL, async |held| {
                    std::thread::sleep(TTL * 2);
                    (held.is_live(), held.stop().is_none())
                })
                .await
        });
        blocker.await.unwrap();
        outcome.await.unwrap().unwrap()
    });
    assert_eq!(outcome.into_value(), Some((true, true)));
    assert!(is_free(&repo));
}

#[test]
fn c33_a_guard_that_outlives_its_runtime_frees_the_row() {
    let repo = MemoryRepo::new();
    let lease = Lease::new(repo.clone());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let guard = runtime.block_on(lease.try_acquire("job", TTL)).unwrap().unwrap();
    let held = guard.held().clone();
    runtime.spawn(async move {
        std::future::pending::<()>().await;
        drop(guard);
    });
    drop(runtime);
    eventually("the row is free", || is_free(&repo));
    assert!(!held.is_live());
}

#[test]
fn a_lease_works_without_any_runtime_of_the_caller() {
    let repo = MemoryRepo::new();
    let lease = Lease::new(repo.clone());
    let outcome = futures_util::future::select(
        Box::pin(lease.run("job", TTL, async |held| held.token())),
        std::future::pending::<()>(),
    );
    let futures_util::future::Either::Left((outcome, _)) = block_on(outcome) else {
        unreachable!()
    };
    assert!(matches!(outcome, Ok(Outcome::Ran(_))));
    assert!(is_free(&repo));
}

/// The smallest executor: it knows nothing of tokio.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            return value;
        }
        std::thread::park();
    }
}

#[test]
fn c48_an_observer_that_never_returns_stops_no_heartbeat() {
    let repo = MemoryRepo::new();
    let lease = Lease::builder(repo.clone())
        .observer(|_: &Event| std::thread::sleep(Duration::from_secs(3_600)))
        .build();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let kept = runtime.block_on(lease.run("job", TTL, async |held| {
        BootClock.sleep_until(BootClock.now() + TTL * 2).await;
        held.is_live()
    }));
    assert_eq!(kept.unwrap().into_value(), Some(true));
    for number in 0..2_000 {
        runtime
            .block_on(lease.run(format!("job-{number}"), TTL, async |_| ()))
            .unwrap()
            .into_value()
            .unwrap();
    }
    assert!(lease.dropped_events() > 0, "they are counted, not waited for");
}

#[test]
fn an_observer_is_told_of_each_step_and_may_panic() {
    let (sender, events) = channel();
    let observer = move |event: &Event| {
        sender.send(event.clone()).unwrap();
        panic!("an observer's own");
    };
    let lease = Lease::builder(MemoryRepo::new()).observer(observer).build();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime
        .block_on(lease.run("job", TTL, async |_| ()))
        .unwrap()
        .into_value()
        .unwrap();
    let next = || events.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(matches!(next(), Event::Acquired { .. }));
    assert!(matches!(
        next(),
        Event::Ended {
            release: Ok(Release::Released),
            ..
        }
    ));
}

/// A clock that panics on the keeper's thread once it is told to.
#[derive(Clone, Default)]
struct Fuse {
    lit: Arc<AtomicUsize>,
}

impl Clock for Fuse {
    fn now(&self) -> Moment {
        let on_keeper = std::thread::current().name() == Some("lease-keeper");
        assert!(
            !(on_keeper && self.lit.swap(0, Ordering::SeqCst) == 1),
            "the keeper dies here, on purpose"
        );
        BootClock.now()
    }

    fn sleep_until(&self, at: Moment) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        BootClock.sleep_until(at)
    }
}

#[test]
fn c50_a_keeper_that_dies_tells_every_tenure_and_the_next_tick_has_a_new_one() {
    let (repo, fuse) = (MemoryRepo::new(), Fuse::default());
    let lease = Lease::builder(repo.clone()).clock(fuse.clone()).build();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let guard = runtime.block_on(lease.try_acquire("job", TTL)).unwrap().unwrap();
    let other = runtime.block_on(lease.try_acquire("other", TTL)).unwrap().unwrap();
    let before = BootClock.now();
    fuse.lit.store(1, Ordering::SeqCst);
    let stop = runtime.block_on(other.held().cancelled());
    assert!(matches!(stop, Stop::Keeper));
    assert!(other.held().is_live(), "its time is what its last renewal gave");
    // Each tenure is told, one after the other.
    assert!(matches!(runtime.block_on(guard.held().cancelled()), Stop::Keeper));
    let outcome = runtime.block_on(guard.run(async |_| ()));
    assert!(
        matches!(outcome, Outcome::Dropped { stop: Stop::Keeper, .. }),
        "{outcome:?}"
    );
    let ended = runtime.block_on(other.held().until_lost(std::future::pending::<()>()));
    assert!(
        ended.is_err() && BootClock.now().since(before) < TTL * 5,
        "dropped when its time is over, without a keeper"
    );
    assert!(!other.held().is_live(), "and not before");
    drop(other);
    let outcome = runtime.block_on(lease.run("next", TTL, async |_| ())).unwrap();
    assert!(matches!(outcome, Outcome::Ran(_)), "{outcome:?}");
}

#[test]
fn c50_a_keeper_on_a_runtime_that_shut_down_tells_every_tenure() {
    let own = tokio::runtime::Runtime::new().unwrap();
    let lease = Lease::builder(MemoryRepo::new())
        .keeper_on(own.handle().clone())
        .build();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let guard = runtime.block_on(lease.try_acquire("job", TTL)).unwrap().unwrap();
    drop(own);
    assert!(matches!(runtime.block_on(guard.held().cancelled()), Stop::Keeper));
    assert!(runtime.block_on(guard.release()).is_err());
    let outcome = runtime.block_on(lease.run("next", TTL, async |_| ())).unwrap();
    assert!(
        matches!(outcome, Outcome::Skipped(Skip::Store(_))),
        "it says why: {outcome:?}"
    );
}

/// A backend that panics.
struct Panics;

impl Repo for Panics {
    async fn acquire(&self, _: &Claim) -> Result<Acquire, RepoError> {
        panic!("a backend's own")
    }
    async fn renew(&self, _: &Claim) -> Result<Renew, RepoError> {
        panic!("a backend's own")
    }
    async fn release(&self, _: &Claim) -> Result<Release, RepoError> {
        panic!("a backend's own")
    }
}

#[test]
fn a_backend_that_panics_has_no_answer_and_takes_nobody_with_it() {
    let lease = Lease::new(Panics);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for _ in 0..2 {
        let outcome = runtime.block_on(lease.run("job", TTL, async |_| ())).unwrap();
        let Outcome::Skipped(Skip::Store(error)) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(
            std::error::Error::source(&error)
                .unwrap()
                .to_string()
                .contains("a backend's own")
        );
    }
}

/// A store that notes where hints are waited for, and by how many.
struct Hinting {
    repo: MemoryRepo,
    waiting: Arc<AtomicUsize>,
}

struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
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
        assert_eq!(std::thread::current().name(), Some("lease-keeper"));
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(self.waiting.clone());
        self.repo.freed(name).await;
    }
}

#[test]
fn a_hint_is_waited_for_on_the_keepers_thread_and_as_long_as_somebody_waits() {
    let (repo, waiting) = (MemoryRepo::new(), Arc::default());
    let lease = Lease::new(Hinting {
        repo: repo.clone(),
        waiting: Arc::clone(&waiting),
    });
    let other = Lease::new(repo);
    let held = block_on(other.try_acquire("job", TTL)).unwrap().unwrap();
    let is = |count: usize| waiting.load(Ordering::SeqCst) == count;
    let in_time = block_on(lease.acquire("job", TTL, Wait::For(Duration::from_millis(100))));
    assert!(in_time.is_err(), "it is held");
    eventually("nobody waits any more", || is(0));
    let waiter = lease.clone();
    let thread = std::thread::spawn(move || block_on(waiter.acquire("job", TTL, Wait::Forever)).unwrap());
    eventually("one waits", || is(1));
    block_on(held.release()).unwrap();
    let guard = thread.join().unwrap();
    eventually("who has it waits no more", || is(0));
    block_on(guard.release()).unwrap();
}

/// Counts the sleeps that are begun on it.
struct Sleeps(Arc<AtomicUsize>);

impl Clock for Sleeps {
    fn now(&self) -> Moment {
        BootClock.now()
    }

    fn sleep_until(&self, at: Moment) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        BootClock.sleep_until(at)
    }
}

/// Each turn of the keeper began a sleep and dropped it, for which tokio woke the thread that it ran on.
#[test]
fn a_turn_of_the_keeper_keeps_the_sleep_that_is_under_way() {
    const PAIRS: usize = 100;
    let begun = Arc::new(AtomicUsize::new(0));
    let lease = Lease::builder(MemoryRepo::new()).clock(Sleeps(begun.clone())).build();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        // Its renewal is what the keeper sleeps for.
        let kept = lease.try_acquire("kept", TTL * 30).await.unwrap().unwrap();
        begun.store(0, Ordering::Relaxed);
        for _ in 0..PAIRS {
            let guard = lease.try_acquire("job", TTL * 30).await.unwrap().unwrap();
            guard.release().await.unwrap();
        }
        kept.release().await.unwrap();
    });
    // Two statements a pair, each with a sleep for its limit. The rest is for a machine that stands still meanwhile: one each second.
    let begun = begun.load(Ordering::Relaxed);
    assert!(begun < 2 * PAIRS + 50, "{begun} sleeps for {PAIRS} pairs");
}

/// Counts how often it is read.
struct Counted(Arc<AtomicUsize>);

impl Clock for Counted {
    fn now(&self) -> Moment {
        self.0.fetch_add(1, Ordering::Relaxed);
        BootClock.now()
    }

    fn sleep_until(&self, at: Moment) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        BootClock.sleep_until(at)
    }
}

/// It asked as fast as it could: nothing was there to wake it.
#[test]
fn where_no_thread_can_be_had_who_waits_asks_with_a_rest_in_between() {
    const NAME: &str = "where_no_thread_can_be_had_who_waits_asks_with_a_rest_in_between";
    const INSIDE: &str = "LEASE_TEST_WITHOUT_THREADS";
    if env::var_os(INSIDE).is_none() {
        // No thread has a stack of that size.
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", NAME, "--test-threads=1"])
            .env(INSIDE, "1")
            .env("RUST_MIN_STACK", (usize::MAX / 4).to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let reads = Arc::new(AtomicUsize::new(0));
    let lease = Lease::builder(MemoryRepo::new()).clock(Counted(reads.clone())).build();
    let wait = Wait::For(Duration::from_millis(500));
    let error = block_on(lease.acquire("job", TTL, wait)).unwrap_err();
    let AcquireError::TimedOut {
        last: Skip::Store(error),
        ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert!(error.to_string().contains("job"), "{error}");
    // A rest is 20 ms, and the clock is read a few times for each try.
    let reads = reads.load(Ordering::Relaxed);
    assert!((10..1_000).contains(&reads), "{reads}");
}

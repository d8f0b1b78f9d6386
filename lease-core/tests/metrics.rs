//! What a dashboard sees, through the exporter that most services have.
//!
//! Metrics are kept by a thread of their own, so that a test waits until it has shown what is expected. That thread reads the
//! paused time of the test.

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use lease_core::{
    Acquire, Claim, Event, Held, Lease, MemoryRepo, OnLost, Operation, Options, Outcome, Release, Renew, Repo,
    RepoError, RepoErrorKind,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use world::{NAME, TTL, World, secs};

/// The exporter, for what is done on this thread as long as it is there.
struct Scrape {
    handle: PrometheusHandle,
    _current: metrics::LocalRecorderGuard<'static>,
}

impl Scrape {
    fn start() -> Self {
        // As long as the process, since a guard borrows it.
        let recorder = Box::leak(Box::new(PrometheusBuilder::new().build_recorder()));
        Self {
            handle: recorder.handle(),
            _current: metrics::set_default_local_recorder(recorder),
        }
    }

    /// Of a series as the exporter writes it, `lease_held` or `lease_acquire_total{result="busy"}`.
    fn value(&self, series: &str) -> Option<f64> {
        let text = self.handle.render();
        let line = text
            .lines()
            .find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == series));
        line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok())
    }

    /// Waits until each series has this value.
    #[track_caller]
    fn shows(&self, expected: &[(&str, f64)]) {
        let is_there = |(series, value): &(&str, f64)| self.value(series).is_some_and(|v| (v - value).abs() < 1e-6);
        self.until(&format!("{expected:?}"), || expected.iter().all(is_there));
    }

    #[track_caller]
    fn until(&self, what: &str, done: impl Fn() -> bool) {
        for _ in 0..1_000 {
            if done() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("not {what} within ten seconds:\n{}", self.handle.render());
    }
}

const HELD: &str = "lease_held";
const OVERRUNNING: &str = "lease_overrunning";
const REMAINING: &str = "lease_remaining_seconds";

/// A store that answers nothing while it is told so.
#[derive(Clone)]
struct Sick {
    repo: MemoryRepo,
    ill: Arc<AtomicBool>,
}

impl Sick {
    fn check(&self, operation: Operation) -> Result<(), RepoError> {
        if self.ill.load(Ordering::SeqCst) {
            return Err(RepoError::new(RepoErrorKind::Unavailable, operation));
        }
        Ok(())
    }
}

impl Repo for Sick {
    async fn acquire(&self, claim: &Claim) -> Result<Acquire, RepoError> {
        self.check(Operation::Acquire)?;
        self.repo.acquire(claim).await
    }
    async fn renew(&self, claim: &Claim) -> Result<Renew, RepoError> {
        self.check(Operation::Renew)?;
        self.repo.renew(claim).await
    }
    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        self.check(Operation::Release)?;
        self.repo.release(claim).await
    }
}

#[tokio::test(start_paused = true)]
async fn each_series_is_there_from_the_first_operation_on_and_in_the_docs() {
    let (scrape, world) = (Scrape::start(), World::new());
    let pod = world.builder("a").metrics_per_lease([NAME.clone()]).build();
    let guard = pod.try_acquire("other", TTL).await.unwrap().unwrap();
    scrape.shows(&[(HELD, 1.0)]);
    let text = scrape.handle.render();
    assert_eq!(shown(&text), listed());
    for row in ["lease_held", "lease_acquire_total", "lease_stopped_total"] {
        assert!(
            text.lines()
                .any(|line| line.starts_with(&format!("{row}{{lease=\"job\""))),
            "{text}"
        );
    }
    drop(guard);
}

/// Kind, label and its words of each metric, as the exporter shows them.
fn shown(text: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let types = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let mut metrics: BTreeMap<_, _> = types
        // What has no buckets is a summary to the exporter.
        .map(|(name, kind)| (name.to_owned(), (kind.replace("summary", "histogram"), BTreeSet::new())))
        .collect();
    for (series, labels) in text.lines().filter_map(|line| line.split_once('{')) {
        for label in labels.split('}').next().unwrap().split(',') {
            let (key, word) = label.split_once('=').unwrap();
            if let Some((_, words)) = metrics.get_mut(series).filter(|_| ["result", "cause"].contains(&key)) {
                words.extend([key.to_owned(), word.trim_matches('"').to_owned()]);
            }
        }
    }
    metrics
}

/// The same, as the docs have it.
fn listed() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let docs = include_str!("../../docs/operating.md");
    let table = docs
        .split("| metric | kind | labels | what it counts |")
        .nth(1)
        .expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let in_code = |cell: &str| {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    let metric = |row: &str| {
        let cells: Vec<&str> = row.split('|').collect();
        let name = in_code(cells[1]).pop_first().expect("a name");
        (name, (cells[2].trim().to_owned(), in_code(cells[3])))
    };
    rows.map(metric).collect()
}

#[tokio::test(start_paused = true)]
async fn a_tick_is_counted_by_what_became_of_it() {
    let (scrape, world) = (Scrape::start(), World::new());
    let sick = Sick {
        repo: world.repo.clone(),
        ill: Arc::default(),
    };
    let lease = Lease::builder(sick.clone())
        .clock(world.clock)
        .keeper_on(tokio::runtime::Handle::current())
        .build();
    let tick = || async { lease.run(&NAME, TTL, async |_| ()).await.unwrap() };
    assert!(matches!(tick().await, Outcome::Ran(_)));
    let held = lease.try_acquire(&NAME, TTL).await.unwrap().unwrap();
    assert!(matches!(tick().await, Outcome::Skipped(_)));
    held.release().await.unwrap();
    let other = world.pod("other");
    // Not this recorder's: it is another Lease, but it is told of on this thread, so its grant counts as well.
    let held = other.try_acquire(&NAME, TTL).await.unwrap().unwrap();
    assert!(matches!(tick().await, Outcome::Skipped(_)));
    sick.ill.store(true, Ordering::SeqCst);
    assert!(matches!(tick().await, Outcome::Skipped(_)));
    assert!(lease.shutdown(secs(1)).await.is_empty());
    assert!(matches!(tick().await, Outcome::Skipped(_)));
    scrape.shows(&[
        ("lease_acquire_total{result=\"granted\"}", 3.0),
        ("lease_acquire_total{result=\"busy\"}", 1.0),
        ("lease_acquire_total{result=\"error\"}", 1.0),
        ("lease_skipped_total{cause=\"busy\"}", 1.0),
        ("lease_skipped_total{cause=\"busy_here\"}", 1.0),
        ("lease_skipped_total{cause=\"store\"}", 1.0),
        ("lease_skipped_total{cause=\"shutting_down\"}", 1.0),
        ("lease_events_dropped_total", 0.0),
    ]);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_shown_with_the_time_it_has_left_until_it_is_released() {
    let (scrape, world) = (Scrape::start(), World::new());
    let sick = Sick {
        repo: world.repo.clone(),
        ill: Arc::default(),
    };
    let lease = Lease::builder(sick.clone())
        .clock(world.clock)
        .keeper_on(tokio::runtime::Handle::current())
        .build();
    let longer = lease.try_acquire("longer", TTL * 2).await.unwrap().unwrap();
    let guard = lease.try_acquire(&NAME, TTL).await.unwrap().unwrap();
    // Of the one that has least: 12 s less a drift of 1 %.
    scrape.shows(&[(HELD, 2.0), (REMAINING, 11.88)]);
    world.sleep(secs(3)).await;
    scrape.shows(&[(REMAINING, 8.88)]);
    world.sleep(secs(3)).await;
    // Renewed after 4 s, together with the longer one.
    scrape.shows(&[(REMAINING, 9.88), ("lease_renew_seconds_count", 1.0)]);
    sick.ill.store(true, Ordering::SeqCst);
    world.sleep(secs(3)).await;
    scrape.shows(&[(REMAINING, 6.88)]);
    scrape.until("failures", || scrape.value("lease_renew_failures_total") > Some(0.0));
    drop(longer);
    // Whether the store has heard of it or not: it is not held here any more.
    guard.release().await.unwrap_err();
    scrape.shows(&[(HELD, 0.0), (REMAINING, 0.0), (OVERRUNNING, 0.0)]);
}

/// Its row is there until a release gets through, but no work goes on.
#[tokio::test(start_paused = true)]
async fn a_grant_that_nobody_waited_for_is_no_work_without_a_lease() {
    let (scrape, world) = (Scrape::start(), World::new());
    let sick = Sick {
        repo: world.repo.clone(),
        ill: Arc::default(),
    };
    let lease = Lease::builder(sick.clone())
        .clock(world.clock)
        .keeper_on(tokio::runtime::Handle::current())
        .build();
    let mut asked = Box::pin(lease.try_acquire(&NAME, TTL));
    assert!(asked.as_mut().now_or_never().is_none());
    world.sleep(secs(1)).await;
    scrape.shows(&[(HELD, 1.0)]);
    sick.ill.store(true, Ordering::SeqCst);
    drop(asked);
    world.sleep(secs(1)).await;
    scrape.shows(&[(HELD, 0.0), (OVERRUNNING, 0.0)]);
}

#[tokio::test(start_paused = true)]
async fn work_that_outlives_its_lease_is_shown_while_it_does_and_measured_when_it_ended() {
    let (scrape, world) = (Scrape::start(), World::new());
    let pod = world.builder("a").metrics_per_lease([NAME.clone()]).build();
    let options = Options::from(TTL).on_lost(OnLost::SignalOnly);
    let work = async |held: Held| {
        scrape.shows(&[("lease_held{lease=\"job\"}", 1.0), (HELD, 0.0)]);
        world.repo.delete_row(&NAME);
        held.cancelled().await;
        world.sleep(secs(7)).await;
        assert!(!held.is_live());
        let over = [
            ("lease_held{lease=\"job\"}", 0.0),
            ("lease_overrunning{lease=\"job\"}", 1.0),
        ];
        scrape.shows(&over);
    };
    let outcome = pod.run(&NAME, options, work).await.unwrap();
    assert!(matches!(outcome, Outcome::Ran(_)), "{outcome:?}");
    scrape.shows(&[
        ("lease_overrunning{lease=\"job\"}", 0.0),
        ("lease_overrun_seconds_count{lease=\"job\"}", 1.0),
        ("lease_overrun_seconds_sum{lease=\"job\"}", 7.0),
        ("lease_stopped_total{lease=\"job\",cause=\"lost\"}", 1.0),
        ("lease_stopped_total{cause=\"lost\"}", 0.0),
    ]);
}

/// No event tells of the ends of a keeper's tenures when it dies. The gauge goes by the clock, as their work does.
#[tokio::test(start_paused = true)]
async fn a_lease_whose_keeper_died_is_held_until_its_time_is_over() {
    let (scrape, world) = (Scrape::start(), World::new());
    let keeper = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let lease = Lease::builder(world.repo.clone())
        .clock(Still)
        .keeper_on(keeper.handle().clone())
        .build();
    let guard = lease.try_acquire(&NAME, TTL).await.unwrap().unwrap();
    scrape.shows(&[(HELD, 1.0)]);
    keeper.shutdown_background();
    scrape.shows(&[("lease_stopped_total{cause=\"keeper\"}", 1.0), (HELD, 1.0)]);
    STILL.store(TTL.as_nanos() as u64, Ordering::SeqCst);
    scrape.shows(&[(HELD, 0.0), (REMAINING, 0.0), (OVERRUNNING, 1.0)]);
    drop(guard);
    scrape.shows(&[(OVERRUNNING, 0.0)]);
}

static STILL: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// It stands still but for jumps.
struct Still;

impl lease_core::Clock for Still {
    fn now(&self) -> lease_core::Moment {
        lease_core::Moment::from_nanos((1 << 60) + STILL.load(Ordering::SeqCst))
    }
    fn sleep_until(&self, at: lease_core::Moment) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            while Still.now() < at {
                tokio::time::timeout(Duration::from_millis(5), std::future::pending::<()>())
                    .await
                    .unwrap_err();
            }
        })
    }
}

/// An observer that blocks costs events, and never a gauge.
#[tokio::test(start_paused = true)]
async fn gauges_are_right_again_after_events_were_dropped() {
    let (scrape, world) = (Scrape::start(), World::new());
    let (release, wait) = sync_channel::<()>(0);
    let wait = Mutex::new(wait);
    let observer = move |_: &Event| {
        let _ = wait.lock().unwrap().recv();
    };
    let pod = world.builder("a").observer(observer).build();
    let kept = pod.try_acquire(&NAME, TTL).await.unwrap().unwrap();
    for number in 0..1_000 {
        pod.run(format!("job-{number}"), TTL, async |_| ())
            .await
            .unwrap()
            .into_value()
            .unwrap();
    }
    let untold = pod.try_acquire("untold", TTL).await.unwrap().unwrap();
    let dropped = pod.dropped_events();
    assert!(dropped > 0);
    drop(release);
    let dropped = dropped as f64;
    scrape.shows(&[(HELD, 2.0), ("lease_events_dropped_total", dropped)]);
    kept.release().await.unwrap();
    untold.release().await.unwrap();
    scrape.shows(&[(HELD, 0.0)]);
}

/// A process may have more than one `Lease`, and each counts.
#[tokio::test(start_paused = true)]
async fn two_of_one_process_are_added_up_and_nothing_stays_when_they_are_gone() {
    let (scrape, world) = (Scrape::start(), World::new());
    let (a, b) = (world.pod("a"), world.pod("b"));
    let first = a.try_acquire("first", TTL).await.unwrap().unwrap();
    let second = b.try_acquire("second", TTL).await.unwrap().unwrap();
    scrape.shows(&[(HELD, 2.0)]);
    first.release().await.unwrap();
    scrape.shows(&[(HELD, 1.0)]);
    drop((a, b, second));
    world.sleep(secs(1)).await;
    scrape.shows(&[(HELD, 0.0), (OVERRUNNING, 0.0)]);
    // One that is gone before the next look is due.
    let brief = world.pod("brief");
    let guard = brief.try_acquire("third", TTL).await.unwrap().unwrap();
    scrape.shows(&[(HELD, 1.0)]);
    drop((brief, guard));
    world.sleep(secs(1)).await;
    scrape.shows(&[(HELD, 0.0)]);
}

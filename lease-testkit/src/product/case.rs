//! [`Case`]: one combination, and the pod it runs on.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lease_core::{
    Claim, Clock, Guard, Inspect, Job, Label, Lease, LeaseName, LeaseRow, Moment, Operation, Options, Release, Repo,
};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::layer::{Seen, Watched};
use super::probe::Probe;
use super::{Backend, Met, Point, Product, Public, Time, ensure};
use crate::FaultyRepo;

/// So long that no row is freed by its expiry: only a release does it.
pub(super) const TTL: Duration = Duration::from_secs(60);
/// Longer than a job that is not stopped.
pub(super) const MINIMUM: Duration = Duration::from_secs(50);
/// A shutdown's, with time for a renewal.
pub(super) const GRACE: Duration = Duration::from_secs(30);
/// Long, where nothing is waited for.
const LONG: Duration = Duration::from_secs(10);
/// When another pod gives up the lease that is waited for.
const TAKEN: Duration = Duration::from_millis(1_700);
/// When the store recovers for one who goes on after errors.
const OUTAGE: Duration = Duration::from_secs(3);

/// One combination.
pub(super) struct Case {
    pub(super) public: Public,
    pub(super) met: Met,
    pub(super) point: Point,
    pub(super) name: String,
}

/// What became of a combination.
pub(super) struct Done {
    /// Whether the future ended by itself.
    pub(super) ended: bool,
    /// Whether the store was called in the way that was to fail.
    pub(super) met: bool,
}

impl Case {
    /// Runs it and looks at what is left.
    pub(super) async fn run<B: Backend>(&self, product: &Product<B>) -> Result<Done, String> {
        let tasks = alive_tasks();
        let pod = Pod::new(product, self)?;
        let background = pod.background(self).await?;
        let reached = self.reach(&pod).await?;
        let (polls, ended) = (pod.probe.polls(), reached.ended);
        ensure!(
            pod.probe.is_gone(),
            "the job was not dropped with the future that ran it"
        );
        // The lease that was used is the last that was granted until now.
        let used = reached.used.then(|| pod.seen.granted().pop()).flatten();
        ensure!(used.is_some() == reached.used, "it used a lease that was not granted");
        self.after(&pod, used, reached.is_closed, background).await?;
        ensure!(pod.probe.polls() == polls, "the job was polled after it was dropped");
        ensure!(pod.probe.is_gone(), "the job was not dropped once");
        ensure!(!pod.seen.overtook(), "it was released while the job ran");
        let met = self.met.is_none_or(|(operation, _)| pod.faults.calls(operation) > 0);
        pod.ends(tasks).await?;
        product.backend.sound().await?;
        Ok(Done { ended, met })
    }

    /// How long its job lasts: over one renewal, or over its lease where renewals fail.
    pub(super) fn lasts(&self) -> Duration {
        match self.met {
            _ if self.public == Public::ShutDownStubborn => TTL + MINIMUM,
            Some((Operation::Renew, answer)) if answer.is_failure() => TTL + MINIMUM,
            _ => Duration::from_secs(25),
        }
    }
}

/// A pod with faults on its way to the store.
pub(super) struct Pod<'a, B: Backend> {
    pub(super) backend: &'a B,
    pub(super) time: Time,
    pub(super) seen: Arc<Seen>,
    pub(super) faults: FaultyRepo<Watched<B::Repo>>,
    pub(super) lease: Lease,
    pub(super) job: Job,
    pub(super) options: Options,
    pub(super) probe: Probe,
    pub(super) name: LeaseName,
    observer: Weak<()>,
    store: Weak<()>,
}

impl<'a, B: Backend> Pod<'a, B> {
    fn new(product: &'a Product<B>, case: &Case) -> Result<Self, String> {
        let (seen, store, observed) = (Arc::new(Seen::default()), Arc::new(()), Arc::new(()));
        let (observer, stored) = (Arc::downgrade(&observed), Arc::downgrade(&store));
        let probe = Probe::default();
        let watched = Watched {
            repo: product.backend.repo(),
            seen: seen.clone(),
            probe: probe.clone(),
            store,
        };
        let faults = FaultyRepo::with_clock(watched, product.time.clone());
        let mut options = Options::from(TTL).at_least_for(MINIMUM);
        if let Some(rule) = product.broken {
            options = options.break_rule(rule);
        }
        let lease = Lease::builder(faults.clone())
            .label(Label::new("product").map_err(text)?)
            .clock(product.time.clone())
            .observer(move |_: &lease_core::Event| {
                let _ = &observed;
            })
            .keeper_on(Handle::current())
            .build();
        let job = lease.job(&case.name, options.clone()).map_err(text)?;
        Ok(Self {
            backend: &product.backend,
            time: product.time.clone(),
            seen,
            faults,
            lease,
            name: job.name().clone(),
            job,
            options,
            probe,
            observer,
            store: stored,
        })
    }

    /// What goes on beside the future: another pod has the lease for a while, the store recovers.
    async fn background(&self, case: &Case) -> Result<Vec<JoinHandle<()>>, String> {
        let mut tasks = Vec::new();
        if case.public.is_taken() {
            let holder = Label::new("other").map_err(text)?.new_holder();
            let (repo, claim) = (self.backend.repo(), Claim::new(self.name.clone(), holder, TTL));
            repo.acquire(&claim).await.map_err(text)?;
            let (time, seen) = (self.time.clone(), self.seen.clone());
            tasks.push(tokio::spawn(async move {
                time.sleep(TAKEN).await;
                let _statement = seen.statement();
                while !matches!(repo.release(&claim).await, Ok(Release::Released | Release::NotHeld)) {}
            }));
        }
        if case.public.waits() && matches!(case.met, Some((Operation::Acquire, _))) {
            let (faults, time) = (self.faults.clone(), self.time.clone());
            tasks.push(tokio::spawn(async move {
                time.sleep(OUTAGE).await;
                faults.heal();
            }));
        }
        Ok(tasks)
    }

    /// From now on the store answers as it is to.
    pub(super) fn meet(&self, case: &Case) {
        if let Some((operation, answer)) = case.met {
            self.faults.on(operation, answer.fault(operation));
        }
    }

    /// A guard, from a store that answers well.
    pub(super) async fn guard(&self) -> Result<Guard, String> {
        let guard = self.job.try_acquire().await.map_err(text)?;
        guard.ok_or_else(|| "the lease is taken before it starts".to_owned())
    }

    pub(super) fn now(&self) -> Moment {
        self.time.now()
    }

    /// How much later than said something may happen: by the steps of a paused clock, or on a busy machine.
    pub(super) const fn slack(&self) -> Duration {
        Duration::from_millis(if self.time.is_paused() { 700 } else { 15_000 })
    }

    /// The options of a tick that leaves the row free.
    pub(super) fn tick_options(&self) -> Options {
        self.options.clone().at_least_for(Duration::ZERO)
    }

    pub(super) async fn step(&self) {
        self.time.step(TTL, || self.seen.is_quiet()).await;
    }

    /// Lets time pass until it is so.
    pub(super) async fn until(&self, what: &str, limit: Duration, is_so: impl Fn() -> bool) -> Result<(), String> {
        let end = self.now() + limit;
        while !is_so() {
            ensure!(self.now() < end, "{limit:?} later it is still not so: {what}");
            self.step().await;
        }
        Ok(())
    }

    pub(super) async fn row(&self) -> Result<Option<LeaseRow>, String> {
        self.backend.eyes().get(&self.name).await.map_err(text)
    }

    /// Drops all there is and sees that nothing stays.
    async fn ends(self, tasks: usize) -> Result<(), String> {
        let Self {
            time,
            seen,
            faults,
            lease,
            job,
            observer,
            store,
            ..
        } = self;
        drop((faults, lease, job));
        // An undo that never finds anything ends after two ttl.
        time.leap(TTL * 2 + LONG).await;
        let start = time.now();
        while store.strong_count() > 0 {
            ensure!(time.now().since(start) < LONG, "something still holds the store");
            time.step(LONG, || seen.is_quiet()).await;
        }
        if time.is_paused() {
            super::time::settle().await;
            let left = alive_tasks();
            ensure!(left <= tasks, "{left} tasks live, and before there were {tasks}");
        }
        // Its thread ends when the last sender is gone, by the real clock.
        let start = lease_core::BootClock.now();
        while observer.strong_count() > 0 {
            let waited = lease_core::BootClock.now().since(start);
            ensure!(waited < LONG, "something still holds the observer");
            std::thread::yield_now();
        }
        Ok(())
    }
}

pub(super) fn text(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text += &format!(": {next}");
        cause = next.source();
    }
    text
}

fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

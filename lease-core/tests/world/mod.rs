//! One store and its pods, all on one paused clock.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lease_core::{
    Acquire, Claim, Clock, Event, Label, Lease, LeaseBuilder, LeaseName, MemoryRepo, Moment, Release, Renew, Repo,
    RepoError, Row, TokioClock,
};
use tokio::runtime::Handle;

#[allow(dead_code, reason = "each test file uses what it needs")]
pub const TTL: Duration = Duration::from_secs(12);
pub static NAME: LeaseName = LeaseName::from_static("job");

pub struct World {
    pub clock: TokioClock,
    pub repo: MemoryRepo,
    /// When each acquire came to the store.
    pub tries: Arc<Mutex<Vec<Moment>>>,
}

#[allow(dead_code, reason = "each test file uses what it needs")]
impl World {
    /// Call it inside a runtime with paused time.
    pub fn new() -> Self {
        let clock = TokioClock::new();
        Self {
            clock,
            repo: MemoryRepo::with_time(move || clock.now()),
            tries: Arc::default(),
        }
    }

    pub fn pod(&self, label: &str) -> Lease {
        self.builder(label).build()
    }

    pub fn builder(&self, label: &str) -> LeaseBuilder {
        let label = Label::new(label).unwrap();
        let repo = Counted {
            repo: self.repo.clone(),
            clock: self.clock,
            tries: self.tries.clone(),
        };
        Lease::builder(repo)
            .label(label)
            .clock(self.clock)
            .keeper_on(Handle::current())
    }

    /// A pod, and what it tells an observer; the end comes after the pod's own.
    pub fn observed(&self, label: &str) -> (Lease, Receiver<Event>) {
        let (sender, events) = channel();
        let observer = move |event: &Event| drop(sender.send(event.clone()));
        (self.builder(label).observer(observer).build(), events)
    }

    pub async fn sleep(&self, duration: Duration) {
        self.clock.sleep_until(self.clock.now() + duration).await;
    }

    pub fn row(&self) -> Option<Row> {
        self.repo.snapshot().remove(NAME.as_str())
    }

    pub fn is_free(&self) -> bool {
        self.row().is_none_or(|row| row.expires_at <= self.repo.now_us())
    }
}

#[allow(dead_code, reason = "each test file uses what it needs")]
pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// The store, with a note of each acquire.
struct Counted {
    repo: MemoryRepo,
    clock: TokioClock,
    tries: Arc<Mutex<Vec<Moment>>>,
}

impl Repo for Counted {
    async fn acquire(&self, claim: &Claim) -> Result<Acquire, RepoError> {
        self.tries.lock().unwrap().push(self.clock.now());
        self.repo.acquire(claim).await
    }

    async fn renew(&self, claim: &Claim) -> Result<Renew, RepoError> {
        self.repo.renew(claim).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        self.repo.release(claim).await
    }

    async fn renew_all(&self, claims: &[Claim]) -> Vec<Result<Renew, RepoError>> {
        self.repo.renew_all(claims).await
    }

    async fn freed(&self, name: &LeaseName) {
        self.repo.freed(name).await;
    }
}

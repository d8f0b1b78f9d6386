//! [`Watched`]: the store behind the faults, and what it saw.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lease_core::{Acquire, Claim, LeaseName, Release, Renew, Repo, RepoError};

use super::probe::Probe;

/// Passes everything on, and writes down what matters.
pub(super) struct Watched<R> {
    pub(super) repo: Arc<R>,
    pub(super) seen: Arc<Seen>,
    /// The job of the lease.
    pub(super) probe: Probe,
    /// Nobody else keeps it: while it is alive, so is the store.
    pub(super) store: Arc<()>,
}

impl<R> Clone for Watched<R> {
    fn clone(&self) -> Self {
        Self {
            repo: self.repo.clone(),
            seen: self.seen.clone(),
            probe: self.probe.clone(),
            store: self.store.clone(),
        }
    }
}

/// What came through to the store.
#[derive(Debug, Default)]
pub(super) struct Seen {
    under_way: AtomicUsize,
    granted: Mutex<Vec<String>>,
    overtook: AtomicBool,
}

impl Seen {
    /// Whether no statement is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) == 0
    }

    /// Whether the job's lease was released while it ran. The undo of an earlier try is no such release.
    pub(super) fn overtook(&self) -> bool {
        self.overtook.load(Ordering::SeqCst)
    }

    /// The holders that were granted a lease.
    pub(super) fn granted(&self) -> Vec<String> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One is under way until this is dropped.
    pub(super) fn statement(&self) -> Statement<'_> {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        Statement(self)
    }
}

pub(super) struct Statement<'a>(&'a Seen);

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

#[deny(clippy::missing_trait_methods, reason = "a provided method would pass the store by")]
impl<R: Repo> Repo for Watched<R> {
    async fn acquire(&self, claim: &Claim) -> Result<Acquire, RepoError> {
        let _statement = self.seen.statement();
        let answer = self.repo.acquire(claim).await;
        if matches!(answer, Ok(Acquire::Granted(_))) {
            let mut granted = self.seen.granted.lock().unwrap_or_else(PoisonError::into_inner);
            granted.push(claim.holder.as_str().to_owned());
        }
        answer
    }

    async fn renew(&self, claim: &Claim) -> Result<Renew, RepoError> {
        let _statement = self.seen.statement();
        self.repo.renew(claim).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        let _statement = self.seen.statement();
        let is_the_jobs = self
            .seen
            .granted()
            .last()
            .is_some_and(|last| last == claim.holder.as_str());
        let overtakes = is_the_jobs && self.probe.runs();
        self.seen.overtook.fetch_or(overtakes, Ordering::SeqCst);
        self.repo.release(claim).await
    }

    fn batch_size(&self) -> usize {
        self.repo.batch_size()
    }

    async fn renew_all(&self, claims: &[Claim]) -> Vec<Result<Renew, RepoError>> {
        let _statement = self.seen.statement();
        self.repo.renew_all(claims).await
    }

    async fn freed(&self, name: &LeaseName) {
        self.repo.freed(name).await;
    }
}

//! [`FaultyRepo`]: any store, with faults on its way.

use std::fmt;
use std::future::{Future, pending};
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lease_core::{
    Acquire, BootClock, Claim, Clock, LeaseName, Operation, Release, Renew, Repo, RepoError, RepoErrorKind,
};

mod fault;
mod script;

pub use fault::{Chances, Fault};
use script::Script;

/// Wraps a store and lets calls fail: as a test scripts it, or by chance from a seed. Clones share the script.
///
/// ```
/// use lease_core::{MemoryRepo, Operation, RepoErrorKind};
/// use lease_testkit::{Fault, FaultyRepo};
///
/// let repo = FaultyRepo::new(MemoryRepo::new());
/// repo.next_acquire(Fault::ReplyLost);
/// repo.on(Operation::Renew, Fault::Fails(RepoErrorKind::Unavailable));
/// // ... the first acquire commits and answers with an error; no renewal comes through ...
/// repo.heal();
/// assert_eq!(repo.calls(Operation::Renew), 0);
/// ```
#[derive(Clone)]
pub struct FaultyRepo<R> {
    inner: Arc<R>,
    script: Arc<Mutex<Script>>,
    clock: Arc<dyn Clock>,
}

impl<R> FaultyRepo<R> {
    /// A wrapper that changes nothing yet. Delays are real time.
    pub fn new(inner: R) -> Self {
        Self::with_clock(inner, BootClock)
    }

    /// A wrapper whose delays pass on a clock that a test moves.
    pub fn with_clock(inner: R, clock: impl Clock) -> Self {
        Self {
            inner: Arc::new(inner),
            script: Arc::default(),
            clock: Arc::new(clock),
        }
    }

    /// Lets calls fail by chance from now on. The n-th call of an operation meets the same fault for the same seed.
    #[must_use]
    pub fn seeded(self, seed: u64, chances: Chances) -> Self {
        self.script().seed(seed, chances);
        self
    }

    /// The store behind.
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// Scripts one call: the next of this operation that nothing is scripted for yet.
    pub fn next(&self, operation: Operation, fault: Fault) {
        self.script().next(operation, fault);
    }

    /// Scripts the next acquire.
    pub fn next_acquire(&self, fault: Fault) {
        self.next(Operation::Acquire, fault);
    }

    /// Scripts the next renewal.
    pub fn next_renew(&self, fault: Fault) {
        self.next(Operation::Renew, fault);
    }

    /// Scripts the next release.
    pub fn next_release(&self, fault: Fault) {
        self.next(Operation::Release, fault);
    }

    /// Scripts every call of an operation until [`heal`](Self::heal), after those scripted singly.
    pub fn on(&self, operation: Operation, fault: Fault) {
        self.script().always(operation, fault);
    }

    /// Forgets all faults, seeded ones too. Calls that hang go on hanging, late statements still wait.
    pub fn heal(&self) {
        self.script().heal();
    }

    /// How often an operation was called. A batch of renewals is one call.
    #[must_use]
    pub fn calls(&self, operation: Operation) -> u64 {
        self.script().calls(operation)
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Repo> FaultyRepo<R> {
    /// Runs the statements that were kept back, in their order: those of [`Fault::RunsLate`] and [`Fault::Frozen`].
    ///
    /// Nobody waits for their answers any more. Answers how many ran.
    pub async fn run_late(&self) -> usize {
        let late = self.script().take_late();
        for (operation, claim) in &late {
            match operation {
                Operation::Acquire => drop(self.inner.acquire(claim).await),
                Operation::Renew => drop(self.inner.renew(claim).await),
                _ => drop(self.inner.release(claim).await),
            }
        }
        late.len()
    }

    /// Lets `work`, which does nothing before it is polled, meet the fault that is next.
    async fn meet<T: Send>(
        &self,
        operation: Operation,
        claims: &[Claim],
        work: impl Future<Output = Result<T, RepoError>> + Send,
    ) -> Result<T, RepoError> {
        let fault = self.script().meet(operation);
        let error = |kind| {
            let error = RepoError::new(kind, operation).with_source("a fault made by the test");
            claims
                .first()
                .map_or_else(|| error.clone(), |claim| error.clone().with_lease(&claim.name))
        };
        match fault {
            None => work.await,
            Some(Fault::Refused) => Err(error(RepoErrorKind::Unavailable).never_executed()),
            Some(Fault::Fails(kind)) => Err(error(kind)),
            Some(Fault::ReplyLost) => {
                work.await?;
                Err(error(RepoErrorKind::Unavailable))
            }
            Some(Fault::RunsLate) => {
                self.script().keep(operation, claims);
                Err(error(RepoErrorKind::Timeout))
            }
            Some(Fault::Delay(delay)) => {
                self.clock.sleep_until(self.clock.now() + delay).await;
                work.await
            }
            Some(Fault::DelayReply(delay)) => {
                let answer = work.await;
                self.clock.sleep_until(self.clock.now() + delay).await;
                answer
            }
            Some(Fault::Hang) => pending().await,
            Some(Fault::HangReply) => {
                work.await?;
                pending().await
            }
            Some(Fault::Frozen) => {
                self.script().keep(operation, claims);
                pending().await
            }
        }
    }
}

#[deny(clippy::missing_trait_methods, reason = "a provided method would pass the faults by")]
impl<R: Repo> Repo for FaultyRepo<R> {
    async fn acquire(&self, claim: &Claim) -> Result<Acquire, RepoError> {
        let work = self.inner.acquire(claim);
        self.meet(Operation::Acquire, slice::from_ref(claim), work).await
    }

    async fn renew(&self, claim: &Claim) -> Result<Renew, RepoError> {
        let work = self.inner.renew(claim);
        self.meet(Operation::Renew, slice::from_ref(claim), work).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        let work = self.inner.release(claim);
        self.meet(Operation::Release, slice::from_ref(claim), work).await
    }

    fn batch_size(&self) -> usize {
        self.inner.batch_size()
    }

    async fn renew_all(&self, claims: &[Claim]) -> Vec<Result<Renew, RepoError>> {
        let work = async { Ok(self.inner.renew_all(claims).await) };
        match self.meet(Operation::Renew, claims, work).await {
            Ok(answers) => answers,
            Err(error) => claims
                .iter()
                .map(|claim| Err(error.clone().with_lease(&claim.name)))
                .collect(),
        }
    }

    async fn freed(&self, name: &LeaseName) {
        self.inner.freed(name).await;
    }
}

impl<R: fmt::Debug> fmt::Debug for FaultyRepo<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyRepo")
            .field("inner", &self.inner)
            .field("script", &*self.script())
            .finish_non_exhaustive()
    }
}

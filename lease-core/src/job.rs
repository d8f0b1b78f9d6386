//! [`Job`]: a name with options, checked once.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;
use crate::{AcquireError, Guard, Held, LeaseName, Moment, Outcome, Skip, Timing};

/// The shortest pause between two tries of a waiting acquire.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause: a lease that was released early is found free no later.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A lease's name with its options, checked. Made by [`Lease::job`](crate::Lease::job).
#[derive(Clone)]
pub struct Job {
    core: Arc<Core>,
    name: LeaseName,
    timing: Timing,
}

/// How long [`Job::acquire`] waits for a lease that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// So long. Zero is one try.
    For(Duration),
    /// Until it is free or this process shuts down.
    Forever,
}

impl Job {
    pub(crate) const fn new(core: Arc<Core>, name: LeaseName, timing: Timing) -> Self {
        Self { core, name, timing }
    }

    /// Which lease.
    #[must_use]
    pub const fn name(&self) -> &LeaseName {
        &self.name
    }

    /// The times of a tenure.
    #[must_use]
    pub const fn timing(&self) -> &Timing {
        &self.timing
    }

    /// As [`Lease::with_lease`](crate::Lease::with_lease).
    ///
    /// # Errors
    /// f's own.
    ///
    /// # Panics
    /// When f panics, after the lease was released.
    pub async fn with_lease<F, Fut, T, E>(&self, f: F) -> Result<Option<T>, E>
    where
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.run(f).await.into_value().transpose()
    }

    /// Tries once to take the lease, and runs f under it: see [`Guard::run`].
    ///
    /// # Panics
    /// When f panics, after the lease was released.
    ///
    /// # Cancelling
    /// Dropping this future drops f; a lease that was taken, or that may have been, is released in the background.
    pub async fn run<F, Fut, T>(&self, f: F) -> Outcome<T>
    where
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = T>,
    {
        match self.ask().await {
            Ok(guard) => guard.run(f).await,
            Err(skip) => Outcome::Skipped(skip),
        }
    }

    /// Tries once to take the lease, for at most five seconds. `None` when somebody has it.
    ///
    /// # Errors
    /// [`AcquireError`]: the store had no answer, or this process shuts down.
    ///
    /// # Cancelling
    /// After dropping this future, a lease that was taken, or that may have been, is released in the background.
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        match self.ask().await {
            Ok(guard) => Ok(Some(guard.into_users_hands())),
            Err(Skip::Busy(_) | Skip::BusyHere) => Ok(None),
            Err(Skip::Store(error)) => Err(AcquireError::Store(error)),
            Err(Skip::ShuttingDown) => Err(AcquireError::ShuttingDown),
        }
    }

    /// Takes the lease, waiting for it while somebody else has it or the store has no answer.
    ///
    /// It tries again when the incumbent's time is known to be over, and at least about every third of a ttl or every
    /// second, with jitter. The time of waiting does not limit the time of holding.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] with what the last try found. [`AcquireError::Store`] at once when the failure is of
    /// a kind that waiting does not mend (`RepoErrorKind::is_transient`).
    ///
    /// # Cancelling
    /// After dropping this future, a lease that was taken, or that may have been, is released in the background.
    pub async fn acquire(&self, wait: Wait) -> Result<Guard, AcquireError> {
        let deadline = match wait {
            Wait::For(duration) => self.core.clock.now() + duration,
            Wait::Forever => Moment::FAR,
        };
        loop {
            let skip = match self.ask().await {
                Ok(guard) => return Ok(guard.into_users_hands()),
                Err(Skip::ShuttingDown) => return Err(AcquireError::ShuttingDown),
                Err(Skip::Store(error)) if !error.kind().is_transient() => return Err(AcquireError::Store(error)),
                Err(skip) => skip,
            };
            let now = self.core.clock.now();
            if now >= deadline {
                return Err(AcquireError::TimedOut {
                    name: self.name.clone(),
                    last: skip,
                });
            }
            self.core.sleep_until(deadline.min(now + self.pause(&skip))).await;
        }
    }

    async fn ask(&self) -> Result<Guard, Skip> {
        let asked = self.core.ask(&self.name, self.timing).await;
        if let Err(skip) = &asked {
            self.core.skipped(&self.name, skip);
        }
        asked
    }

    /// Between half and the whole of a third of a ttl, or to the incumbent's expiry if that is sooner.
    fn pause(&self, skip: &Skip) -> Duration {
        let interval = (self.timing.ttl() / 3).min(LONGEST_PAUSE);
        let jittered = interval / 2 + (interval / 2).mul_f64(fastrand::f64());
        match skip {
            Skip::Busy(Some(incumbent)) if incumbent.expires_in < jittered => {
                incumbent.expires_in + SHORTEST_PAUSE + SHORTEST_PAUSE.mul_f64(fastrand::f64())
            }
            _ => jittered,
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("name", &self.name)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

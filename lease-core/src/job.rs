//! [`Job`]: a name with options, checked once.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::core::Core;
use crate::names::Reservation;
use crate::{AcquireError, Campaign, Guard, Held, InvalidTiming, LeaseName, Moment, Outcome, Periodic, Skip, Timing};

/// The shortest pause between two tries of a waiting acquire.
pub(crate) const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause: a lease that was released early is found free no later.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A lease's name with its options, checked. Made by [`Lease::job`](crate::Lease::job).
#[derive(Clone)]
pub struct Job {
    pub(crate) core: Arc<Core>,
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
    /// Who waits for it in this process, on this `Lease` or a clone, is served in the order of coming, and only the first of
    /// them asks the store. That one tries again when the store [hints](crate::Repo::freed), when the incumbent's time is
    /// known to be over, and at least about every third of a ttl or every second, with jitter. Between processes there is no
    /// order. The time of waiting does not limit the time of holding.
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
        let mut place = self.queue(deadline).await?;
        let mut freed = None;
        loop {
            let (skip, back) = match self.core.ask(&self.name, self.timing, place).await {
                Ok(guard) => return Ok(guard.into_users_hands()),
                Err(refused) => refused,
            };
            place = back;
            self.core.skipped(&self.name, &skip);
            match skip {
                Skip::ShuttingDown => return Err(AcquireError::ShuttingDown),
                Skip::Store(error) if !error.kind().is_transient() => return Err(AcquireError::Store(error)),
                skip if self.core.clock.now() >= deadline => return Err(self.timed_out(skip)),
                skip => self.pause(&skip, deadline, &mut freed).await,
            }
        }
    }

    /// This job about every `every`, on one of the pods: see [`Periodic`].
    ///
    /// Unless this job has an [`at_least_for`](crate::Options::at_least_for) of its own, it gets one of the interval less half a
    /// percent, which makes it one run per interval over all pods.
    ///
    /// # Errors
    /// [`InvalidTiming`] for an interval that is too short or too long.
    pub fn periodic(mut self, every: Duration) -> Result<Periodic, InvalidTiming> {
        self.timing = self.timing.every(every, Periodic::minimum(every))?;
        Ok(Periodic::new(self, every))
    }

    /// This pod's standing for leader: see [`Campaign`].
    #[must_use]
    pub fn campaign(self) -> Campaign {
        Campaign::new(self)
    }

    pub(crate) async fn ask(&self) -> Result<Guard, Skip> {
        let asked = match self.core.names.reserve(&self.name) {
            Some(reservation) => self.core.ask(&self.name, self.timing, reservation).await,
            None if self.core.closing.is_cancelled() => return self.refused(Skip::ShuttingDown),
            None => return self.refused(Skip::BusyHere),
        };
        asked.or_else(|(skip, _)| self.refused(skip))
    }

    fn refused(&self, skip: Skip) -> Result<Guard, Skip> {
        self.core.skipped(&self.name, &skip);
        Err(skip)
    }

    fn timed_out(&self, last: Skip) -> AcquireError {
        AcquireError::TimedOut {
            name: self.name.clone(),
            last,
        }
    }

    /// The name, when it is this caller's turn in this process: others who wait here ask nobody meanwhile.
    async fn queue(&self, deadline: Moment) -> Result<Reservation, AcquireError> {
        if let Some(reservation) = self.core.names.reserve(&self.name) {
            return Ok(reservation);
        }
        let mut turn = pin!(self.core.names.wait(&self.name));
        loop {
            let now = self.core.clock.now();
            if now >= deadline {
                let last = Skip::BusyHere;
                self.core.skipped(&self.name, &last);
                return Err(self.timed_out(last));
            }
            tokio::select! {
                biased;
                () = self.core.closing.cancelled() => return Err(AcquireError::ShuttingDown),
                reservation = &mut turn => return Ok(reservation),
                () = self.core.sleep_until(deadline.min(now + LONGEST_PAUSE)) => {}
            }
        }
    }

    /// Waits until it is worth while to ask again.
    async fn pause(&self, skip: &Skip, deadline: Moment, freed: &mut Option<oneshot::Receiver<()>>) {
        let asked_at = self.core.clock.now();
        let hint = freed.get_or_insert_with(|| self.core.freed(&self.name));
        tokio::select! {
            biased;
            () = self.core.closing.cancelled() => {}
            // Without an answer the keeper has died, and the next try has another one.
            _ = hint => {
                *freed = None;
                // A backend that always hints is not asked without a rest.
                if self.core.clock.now() < asked_at + SHORTEST_PAUSE {
                    self.core.sleep_until(asked_at + SHORTEST_PAUSE).await;
                }
            }
            () = self.core.sleep_until(deadline.min(asked_at + self.interval(skip))) => {}
        }
    }

    /// Between half and the whole of a third of a ttl, or to the incumbent's expiry if that is sooner.
    fn interval(&self, skip: &Skip) -> Duration {
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

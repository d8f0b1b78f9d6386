//! [`Periodic`]: a job at intervals, on one pod at a time.

use std::fmt;
use std::fmt::Display;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::job::{Job, LONGEST_PAUSE, SHORTEST_PAUSE};
use crate::shift;
use crate::{Guard, Held, Moment, Skip, Standing};

/// Which part of the interval the start is spread over, and its minimum is shorter by.
const SPREAD: u32 = 200;

/// A job that runs about every so often, on whichever of the pods gets it, and once per interval over all of them.
///
/// Made by [`Job::periodic`]. Between two grants lies at least the interval less 1 %, by the database's clock, however
/// many pods there are and however their clocks stand: the lease stays taken for that long, and each pod tries next when the
/// row's time is over, not at a beat of its own. A run that takes longer than the interval delays the next, and nothing is
/// made up for afterwards. A pod that dies in its run frees the lease after its ttl, and another pod then runs within the interval.
///
/// ```
/// # use lease_core::{Lease, MemoryRepo};
/// # use std::time::Duration;
/// # use tokio_util::sync::CancellationToken;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (lease, shutdown) = (Lease::new(MemoryRepo::new()), CancellationToken::new());
/// let reaper = lease.job("reaper", Duration::from_secs(30))?.periodic(Duration::from_secs(60))?;
/// # let stop = shutdown.clone();
/// reaper
///     .run(shutdown, async |held| {
///         println!("this minute is ours, with token {}", held.token());
/// #       stop.cancel();
///         Ok::<_, std::io::Error>(())
///     })
///     .await;
/// # Ok(())
/// # }
/// ```
pub struct Periodic {
    job: Job,
    every: Duration,
    next_at: Moment,
    standing: Standing,
}

impl Periodic {
    pub(crate) fn new(job: Job, every: Duration) -> Self {
        let mut periodic = Self {
            next_at: Moment::ZERO,
            standing: Standing::new(job.core.clone()),
            job,
            every,
        };
        // Pods that are started together are not to ask together.
        periodic.next_at = periodic.job.core.clock.now() + periodic.jitter();
        periodic
    }

    /// How long the lease stays taken from a grant on at the least.
    pub(crate) fn minimum(every: Duration) -> Duration {
        every - every / SPREAD
    }

    /// Whether this pod has its turn, and whether it is healthy: a run whose lease is over though it goes on is not.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.standing.clone()
    }

    /// The lease for the next run here; `None` once `shutdown` has fired, or [`Lease::shutdown`](crate::Lease::shutdown).
    ///
    /// Run something under it by [`Guard::run`]. While the guard is out, no other run begins. A store that has no answer costs
    /// ticks, and nothing else: each such try is an event, and the next one follows.
    ///
    /// # Cancelling
    /// A lease that was taken, or that may have been, is released in the background.
    pub async fn next(&mut self, shutdown: &CancellationToken) -> Option<Guard> {
        loop {
            let core = &self.job.core;
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return None,
                () = core.closing.cancelled() => return None,
                () = core.sleep_until(self.next_at) => {}
            }
            let asked = tokio::select! {
                biased;
                () = shutdown.cancelled() => return None,
                asked = self.job.ask() => asked,
            };
            let now = core.clock.now();
            match asked {
                Ok(guard) => {
                    self.next_at = now + Self::minimum(self.every) + self.jitter();
                    self.standing.leads(guard.held());
                    return Some(guard.into_users_hands());
                }
                Err(Skip::ShuttingDown) => return None,
                Err(skip) => self.next_at = now + self.pause(&skip),
            }
        }
    }

    /// Runs f at each of this pod's turns, until `shutdown` fires. Then f is told by [`Held::cancelled`], if it is under
    /// way, and this returns once it has ended.
    ///
    /// An error of f is an event of level ERROR, [`Event::Failed`](crate::Event::Failed), and the next turn comes all the same.
    ///
    /// # Panics
    /// When f panics, after the lease was released.
    ///
    /// # Cancelling
    /// Dropping this future drops f, then releases in the background.
    pub async fn run<F, E>(mut self, shutdown: CancellationToken, mut f: F)
    where
        F: AsyncFnMut(Held) -> Result<(), E>,
        E: Display,
    {
        while let Some(guard) = self.next(&shutdown).await {
            shift::work(&self.job.core, guard, &shutdown, &mut f).await;
        }
    }

    fn jitter(&self) -> Duration {
        (self.every / SPREAD).mul_f64(fastrand::f64())
    }

    fn pause(&self, skip: &Skip) -> Duration {
        match skip {
            // No longer than the interval: a lease that is held is released before its time, too.
            Skip::Busy(Some(incumbent)) => incumbent.expires_in.min(self.every) + self.jitter(),
            // It was free a moment ago, so that a look will tell how long it is not now.
            Skip::Busy(None) => SHORTEST_PAUSE + self.jitter(),
            _ => {
                let pause = self.every.min(LONGEST_PAUSE);
                pause / 2 + (pause / 2).mul_f64(fastrand::f64())
            }
        }
    }
}

impl fmt::Debug for Periodic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Periodic")
            .field("job", &self.job)
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

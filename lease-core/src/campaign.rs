//! [`Campaign`]: lead, lose, stand again.

use std::fmt;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::job::{Job, Wait};
use crate::shift;
use crate::{AcquireError, Guard, Held, Moment, Stop};

/// A pod that stands for leader, again and again, until it shuts down.
///
/// Made by [`Job::campaign`]. Of all pods that stand under one name at most one leads. Who leads now any pod can read in
/// the column `holder`: [`Inspect::get`](crate::Inspect::get).
///
/// ```
/// # use lease_core::{Lease, MemoryRepo};
/// # use std::time::Duration;
/// # use tokio_util::sync::CancellationToken;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (lease, shutdown) = (Lease::new(MemoryRepo::new()), CancellationToken::new());
/// let campaign = lease.job("leader", Duration::from_secs(15))?.campaign();
/// let standing = campaign.standing(); // for a health endpoint: `standing.is_healthy()`
/// # let stop = shutdown.clone();
/// campaign
///     .run(shutdown, async |held| {
///         assert!(standing.is_leading());
/// #       stop.cancel();
///         held.cancelled().await; // lead until told otherwise
///         Ok::<_, std::io::Error>(())
///     })
///     .await;
/// # Ok(())
/// # }
/// ```
pub struct Campaign {
    job: Job,
    standing: Standing,
    /// Not to stand again before: another pod gets its chance.
    rest_until: Option<Moment>,
    /// Whether it led, and has not rested since.
    led: bool,
}

impl Campaign {
    pub(crate) fn new(job: Job) -> Self {
        let standing = Standing::new(job.core.clone());
        Self {
            job,
            standing,
            rest_until: None,
            led: false,
        }
    }

    /// Whether this pod leads, for its other parts to know.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.standing.clone()
    }

    /// The lease, when this pod leads; `None` once `shutdown` has fired, or [`Lease::shutdown`](crate::Lease::shutdown).
    ///
    /// Lead by [`Guard::run`]. Before it stands again it rests for a third of a ttl, so that giving up means giving away. A store
    /// that has no answer is asked again, whatever is the matter with it; each such try is an event.
    ///
    /// # Cancelling
    /// A lease that was taken, or that may have been, is released in the background.
    pub async fn next(&mut self, shutdown: &CancellationToken) -> Option<Guard> {
        let core = self.job.core.clone();
        if std::mem::take(&mut self.led) {
            self.rest();
        }
        loop {
            if let Some(rest_until) = self.rest_until {
                tokio::select! {
                    biased;
                    () = shutdown.cancelled() => return None,
                    () = core.closing.cancelled() => return None,
                    () = core.sleep_until(rest_until) => self.rest_until = None,
                }
            }
            let acquired = tokio::select! {
                biased;
                () = shutdown.cancelled() => return None,
                acquired = self.job.acquire(Wait::Forever) => acquired,
            };
            match acquired {
                Ok(guard) => {
                    self.standing.leads(guard.held());
                    self.led = true;
                    return Some(guard);
                }
                Err(AcquireError::ShuttingDown) => return None,
                Err(_) => self.rest(),
            }
        }
    }

    /// Leads by f whenever this pod is the leader, until `shutdown` fires. Then f is told by [`Held::cancelled`], if it leads,
    /// and this returns once it has ended.
    ///
    /// f resigns by returning. An error is an event of level ERROR, [`Event::Failed`](crate::Event::Failed), and then the same.
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

    fn rest(&mut self) {
        self.rest_until = Some(self.job.core.clock.now() + self.job.timing().ttl() / 3);
    }
}

impl fmt::Debug for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Campaign")
            .field("job", &self.job)
            .finish_non_exhaustive()
    }
}

/// Whether a pod leads, or has its turn of a [`Periodic`](crate::Periodic): for health endpoints, and whoever sends writes to the
/// leader. A clone is the same one.
#[derive(Clone)]
pub struct Standing {
    core: Arc<Core>,
    held: Arc<Mutex<Option<Held>>>,
}

impl Standing {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            held: Arc::default(),
        }
    }

    /// Whether this pod leads now.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.held().is_some_and(|held| held.is_live())
    }

    /// False while this pod's leader still runs though its lease is over: it blocks, or was told to go on. Then it had better
    /// be restarted. A pod that does not lead is healthy.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.held().is_none_or(|held| held.is_live())
    }

    /// The lease of a leader that has not ended, with its token.
    #[must_use]
    pub fn held(&self) -> Option<Held> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone().filter(|held| !held.has_ended())
    }

    /// Asks this pod's leader to end, by [`Held::cancelled`] with [`Stop::Resigned`]. Says whether there was one to ask.
    ///
    /// The lease is kept until the leader has ended, and then free for others before this pod stands again.
    #[allow(clippy::must_use_candidate, reason = "who does not lead need not resign")]
    pub fn resign(&self) -> bool {
        let Some(held) = self.held() else { return false };
        shift::tell(&self.core, &held, Stop::Resigned);
        true
    }

    pub(crate) fn leads(&self, held: &Held) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held.clone());
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing")
            .field("held", &self.held())
            .finish_non_exhaustive()
    }
}

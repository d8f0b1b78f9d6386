//! [`Event`]s and who gets them: `tracing`, metrics, and an [`Observer`] of your own.
//!
//! They go through a bounded channel to a thread of their own, so that a blocked log writer stops no heartbeat.

use std::time::Duration;

use crate::{Holder, LeaseName, Release, RepoError, Skip, Stop, Token};

#[cfg(feature = "metrics")]
mod metrics;
#[cfg(not(feature = "metrics"))]
#[path = "observe/no_metrics.rs"]
mod metrics;
mod sink;
mod trace;

pub use sink::EVENT_QUEUE;
pub(crate) use sink::{Audience, EventSink};

/// Something worth knowing of a lease.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A tenure began.
    Acquired {
        /// Which lease.
        name: LeaseName,
        /// Which tenure.
        holder: Holder,
        /// Its fencing token.
        token: Token,
    },
    /// A job was not started.
    Skipped {
        /// Which lease.
        name: LeaseName,
        /// Why.
        skip: Skip,
    },
    /// A renewal was answered.
    Renewed {
        /// Which lease.
        name: LeaseName,
        /// Its fencing token.
        token: Token,
        /// How long the answer took.
        took: Duration,
    },
    /// A renewal had no answer. It is tried again while there is time.
    RenewFailed {
        /// Which lease.
        name: LeaseName,
        /// Its fencing token.
        token: Token,
        /// What it ran into.
        error: RepoError,
        /// How long f may still run without a renewal.
        remaining: Duration,
    },
    /// f was told to stop.
    Stopped {
        /// Which lease.
        name: LeaseName,
        /// Its fencing token.
        token: Token,
        /// Why.
        stop: Stop,
    },
    /// The time to drop f has come, and it had not ended.
    Overrun {
        /// Which lease.
        name: LeaseName,
        /// Its fencing token.
        token: Token,
    },
    /// A tenure ended, and its release was tried once.
    Ended {
        /// Which lease.
        name: LeaseName,
        /// Its fencing token.
        token: Token,
        /// What became of the release.
        release: Result<Release, RepoError>,
        /// For how long f, or the guard, was still there after the time to drop it. Zero if it ended in time.
        overrun: Duration,
    },
    /// A job that is repeated returned an error. It is repeated all the same.
    Failed {
        /// Which lease.
        name: LeaseName,
        /// The fencing token it ran under.
        token: Token,
        /// What it said.
        error: String,
    },
    /// The keeper died. Each tenure it had is [`Stopped`](Self::Stopped), by [`Stop::Keeper`] unless it was before; none is
    /// [`Ended`](Self::Ended).
    KeeperDied,
}

/// Gets every [`Event`], on a thread that nothing else waits for. It may block; then later events are dropped and counted.
pub trait Observer: Send + Sync + 'static {
    /// Takes an event. A panic in it is caught.
    fn observe(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync + 'static> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

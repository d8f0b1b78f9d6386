//! What became of a tick: [`Outcome`], [`Skip`], [`Stop`], [`AcquireError`].

use std::fmt;

use crate::{Incumbent, InvalidName, InvalidTiming, LeaseName, Loss, Release, RepoError, Token};

/// What became of a job that was to run under a lease.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub enum Outcome<T> {
    /// f ran to its end. Its value is here even if the lease was lost meanwhile.
    Ran(Ran<T>),
    /// f was dropped before its end because its lease or its time was over; or never polled, because it was told to stop before.
    Dropped {
        /// The tenure's fencing token.
        token: Token,
        /// Why it had to stop.
        stop: Stop,
    },
    /// f was not started.
    Skipped(Skip),
}

impl<T> Outcome<T> {
    /// f's value, if it ran to its end.
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Ran(ran) => Some(ran.value),
            Self::Dropped { .. } | Self::Skipped(_) => None,
        }
    }
}

/// A job that ran to its end.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ran<T> {
    /// What f returned.
    pub value: T,
    /// The tenure's fencing token.
    pub token: Token,
    /// Why f was told to stop, if it was.
    pub stop: Option<Stop>,
    /// What became of the release. After an error it is repeated in the background until it is answered, for up to two ttl.
    pub release: Result<Release, RepoError>,
}

/// Why f was not started.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Skip {
    /// Another tenure has the lease. `None` when it is not known which.
    Busy(Option<Incumbent>),
    /// A job of this name runs under this very [`Lease`](crate::Lease), or a clone of it.
    BusyHere,
    /// The store had no answer. Not known whether anyone has the lease.
    Store(RepoError),
    /// [`Lease::shutdown`](crate::Lease::shutdown) was called.
    ShuttingDown,
}

impl Skip {
    /// The cause as one word, for logs and metrics.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Busy(_) => "busy",
            Self::BusyHere => "busy_here",
            Self::Store(_) => "store",
            Self::ShuttingDown => "shutting_down",
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(Some(incumbent)) => write!(
                f,
                "{} has it, for another {:.0?} unless it is renewed",
                incumbent.holder, incumbent.expires_in
            ),
            Self::Busy(None) => f.write_str("another pod was faster"),
            Self::BusyHere => f.write_str("it runs in this process"),
            Self::Store(error) => error.fmt(f),
            Self::ShuttingDown => f.write_str("this process shuts down"),
        }
    }
}

/// Why f is to end.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Stop {
    /// A renewal was answered: lost.
    Lost(Loss),
    /// No renewal was answered in time.
    Overdue {
        /// What the last try ran into; `None` if it had no answer at all yet.
        last_error: Option<RepoError>,
    },
    /// f has had the time it was given.
    TimeLimit,
    /// [`Lease::shutdown`](crate::Lease::shutdown) was called, or the shutdown of a [`Periodic`](crate::Periodic) or
    /// [`Campaign`](crate::Campaign) fired.
    ShutDown,
    /// A leader was asked to end: [`Standing::resign`](crate::Standing::resign).
    Resigned,
    /// The thread that renews died. The lease ends when its last renewal does.
    Keeper,
}

impl Stop {
    /// The cause as one word, for logs and metrics.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Lost(_) => "lost",
            Self::Overdue { .. } => "overdue",
            Self::TimeLimit => "time_limit",
            Self::ShutDown => "shut_down",
            Self::Resigned => "resigned",
            Self::Keeper => "keeper",
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(Loss::Taken(by)) => write!(f, "the lease was taken by {}", by.holder),
            Self::Lost(Loss::Gone) => f.write_str("the lease's row was deleted"),
            Self::Lost(Loss::Expired) => f.write_str("the lease expired before it was renewed"),
            Self::Lost(Loss::Released) => f.write_str("the lease was released"),
            Self::Lost(Loss::Evicted { by }) => write!(f, "the lease was evicted by {by}"),
            Self::Overdue {
                last_error: Some(error),
            } => write!(f, "no renewal in time: {error}"),
            Self::Overdue { last_error: None } => f.write_str("no renewal in time: the store has not answered"),
            Self::TimeLimit => f.write_str("the time limit is reached"),
            Self::ShutDown => f.write_str("this process shuts down"),
            Self::Resigned => f.write_str("this leader was asked to resign"),
            Self::Keeper => f.write_str("the thread that renews has died"),
        }
    }
}

/// A name or options that can't be used. A mistake in the program, found when the job is made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The options.
    #[error(transparent)]
    Timing(#[from] InvalidTiming),
}

/// Why there is no guard.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The name or the options can't be used.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store had no answer.
    #[error(transparent)]
    Store(RepoError),
    /// [`Lease::shutdown`](crate::Lease::shutdown) was called.
    #[error("this process shuts down")]
    ShuttingDown,
    /// The time to wait is over.
    #[error("lease {:?} was not free in time: {last}", .name.as_str())]
    TimedOut {
        /// Which lease.
        name: LeaseName,
        /// What the last try found.
        last: Skip,
    },
}

/// The lease is not ours any more: stop writing.
#[derive(Debug, Clone, thiserror::Error)]
#[error("lease {:?} is not held any more{}", .name.as_str(), .stop.as_ref().map(|stop| format!(": {stop}")).unwrap_or_default())]
#[non_exhaustive]
pub struct LeaseOver {
    /// Which lease.
    pub name: LeaseName,
    /// Why, if it is known yet.
    pub stop: Option<Stop>,
}

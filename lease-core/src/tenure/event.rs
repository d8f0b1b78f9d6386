//! [`Event`]: what a tenure is told.

use std::time::Duration;

use crate::Token;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// The acquire was granted.
    Granted(Token),
    /// The acquire was answered: somebody else has it.
    Busy,
    /// The acquire had no answer.
    AcquireFailed {
        /// Whether it may have taken effect, or still may.
        may_have_executed: bool,
    },
    /// The renewal was answered: renewed.
    Renewed,
    /// The renewal was answered: lost.
    Lost {
        /// By an eviction, which leaves the row live to the time it had.
        evicted: bool,
    },
    /// The renewal had no answer.
    RenewFailed(Spread),
    /// The release was answered: released.
    Released,
    /// The release was answered: not held.
    NotHeld,
    /// The release had no answer.
    ReleaseFailed,
    /// f starts.
    Started,
    /// f is gone: it returned, panicked, was dropped, or never was.
    Finished {
        /// Whether it had started, so that `at_least_for` counts.
        ran: bool,
    },
    /// Whoever waited for the grant is gone.
    Abandoned,
    /// The application shuts down.
    ShutDown,
    /// The grace of a shutdown is over: f is to be dropped.
    GraceOver,
    /// f is still inside a poll after the grace: renewal stops, and nothing is released.
    Forsaken,
    /// Time has passed.
    Tick,
    /// Others are renewed now, in one statement: this may be too, if it is half due.
    Gather,
    /// The renewal that is under way was sent together with others, which were answered, and it was not.
    LeftOut,
}

/// A random number that spreads retries: from 0, three quarters of the interval, to 255, five quarters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Spread(pub u8);

impl Spread {
    /// Exactly the interval.
    pub const NONE: Self = Self(128);

    pub(super) fn of(self, interval: Duration) -> Duration {
        interval * 3 / 4 + interval * u32::from(self.0) / 512
    }
}

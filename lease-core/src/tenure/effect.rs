//! [`Effect`]: what a tenure wants done.

use std::time::Duration;

use crate::Token;

/// What is to be done, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Call the repo.
    Send(Call),
    /// Hand the lease to whoever waits for it.
    Grant(Token),
    /// Tell whoever waits that there is no lease.
    Refuse(Refusal),
    /// Tell f to stop. Comes once.
    Stop(Cause),
    /// Drop f. Comes once.
    Drop,
    /// Tell what became of the release. Comes once for a tenure that was granted to somebody.
    Settle(Settlement),
}

/// A call of the repo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// `Repo::renew`, or `Repo::renew_all` with others that are due.
    Renew,
    /// `Repo::renew`.
    RenewAlone,
    /// `Repo::release` with this minimum. It burns the holder: no acquire is sent with it any more.
    Release {
        /// See `Claim::at_least_for`.
        at_least_for: Duration,
    },
}

/// Why there is no lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Somebody else has it.
    Busy,
    /// The store had no answer.
    Failed,
    /// The grant came too late to start f.
    Late,
    /// The application shuts down.
    ShuttingDown,
}

/// Why f is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A renewal was answered: lost.
    Lost,
    /// No renewal was answered in time.
    Overdue,
    /// f has had its time.
    TimeLimit,
    /// The application shuts down.
    ShutDown,
}

/// What became of the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settlement {
    /// The row is released.
    Released,
    /// The row was not ours any more.
    NotHeld,
    /// No answer yet. It is repeated until there is one, or until the row has long expired.
    Failed,
    /// Not tried: f is still inside a poll.
    Forsaken,
}

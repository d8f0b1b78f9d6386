//! [`Answer`]: the ways in which a store answers, beside the right one.

use std::time::Duration;

use lease_core::{Operation, RELEASE_LIMIT, RepoErrorKind};

use crate::Fault;

/// How a store answers when not at once and well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Answer {
    /// An error that proves that nothing was executed.
    Refused,
    /// An error that leaves it open; nothing was executed.
    Fails,
    /// An error that leaves it open; it was executed.
    ReplyLost,
    /// An error that leaves it open; it is executed later.
    RunsLate,
    /// Executed late, and answered in time.
    Slow,
    /// Executed at once, and answered late, but in time.
    SlowReply,
    /// Not executed within the limit.
    TooSlow,
    /// Executed at once, and not answered within the limit.
    TooSlowReply,
    /// Neither executed nor answered.
    Never,
    /// Executed, and never answered.
    NeverReplies,
    /// Never answered, and executed when nobody waits any more.
    Frozen,
}

impl Answer {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Refused,
        Self::Fails,
        Self::ReplyLost,
        Self::RunsLate,
        Self::Slow,
        Self::SlowReply,
        Self::TooSlow,
        Self::TooSlowReply,
        Self::Never,
        Self::NeverReplies,
        Self::Frozen,
    ];

    /// One of each kind: an error, one that hides a success, slow, never.
    pub const FEW: &'static [Self] = &[Self::Fails, Self::ReplyLost, Self::SlowReply, Self::Frozen];

    pub(super) fn fault(self, operation: Operation) -> Fault {
        let limit = limit(operation);
        match self {
            Self::Refused => Fault::Refused,
            Self::Fails => Fault::Fails(RepoErrorKind::Unavailable),
            Self::ReplyLost => Fault::ReplyLost,
            Self::RunsLate => Fault::RunsLate,
            Self::Slow => Fault::Delay(limit / 2),
            Self::SlowReply => Fault::DelayReply(limit / 2),
            Self::TooSlow => Fault::Delay(limit * 2),
            Self::TooSlowReply => Fault::DelayReply(limit * 2),
            Self::Never => Fault::Hang,
            Self::NeverReplies => Fault::HangReply,
            Self::Frozen => Fault::Frozen,
        }
    }

    /// Whether no call of the operation succeeds.
    pub(super) const fn is_failure(self) -> bool {
        !matches!(self, Self::Slow | Self::SlowReply)
    }

    /// The longest that the keeper waits for such an answer.
    pub(super) fn takes(self, operation: Operation) -> Duration {
        match self {
            Self::Refused | Self::Fails | Self::ReplyLost | Self::RunsLate => Duration::ZERO,
            Self::Slow | Self::SlowReply => limit(operation) / 2,
            // The keeper cuts off a call that does not keep its limit a quarter later.
            _ => limit(operation) * 5 / 4,
        }
    }
}

/// The limit of a call under a ttl of a minute.
const fn limit(operation: Operation) -> Duration {
    match operation {
        Operation::Release => RELEASE_LIMIT,
        _ => Duration::from_secs(2),
    }
}

//! What is seen of a world: everything that its invariants are judged by.
//!
//! Names, pods, leases and holders are numbers in the order of their first appearance: a holder's own text is random,
//! and nothing may depend on it. Ticks are microseconds of true time, moments are by the pod's own clock, and `now` is by
//! the store's.

use std::fmt;
use std::time::Duration;

use lease_core::{Moment, Stop, Timing};

/// Microseconds of true time since the world began.
pub type Tick = u64;
/// Which holder: one per acquire.
pub type HolderId = usize;

/// The most lease names of a world.
pub const MOST_NAMES: usize = 3;

/// All rows, by number of the name.
pub type Rows = [Option<RowSeen>; MOST_NAMES];

/// Everything that was seen of a world, in its order.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The times of each name's tenures.
    pub names: Vec<Timing>,
    /// The store's clock at tick zero.
    pub epoch: i64,
    /// How far the store's clock was ever off the true time, in microseconds.
    pub largest_step: u64,
    /// What happened.
    pub seen: Vec<Seen>,
    /// How often each fault was drawn.
    pub faults: std::collections::BTreeMap<&'static str, u64>,
}

/// Something that happened, and when.
#[derive(Debug, Clone)]
pub struct Seen {
    /// When, by true time.
    pub at: Tick,
    /// What.
    pub what: What,
}

/// A kind of statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statement {
    /// `Repo::acquire`.
    Acquire,
    /// `Repo::renew`.
    Renew,
    /// `Repo::release`.
    Release,
}

/// What the store says to a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Granted under this token.
    Granted(i64),
    /// Somebody else has it.
    Busy,
    /// Renewed.
    Renewed,
    /// Not ours any more.
    Lost {
        /// By an operator, who left the row live.
        evicted: bool,
    },
    /// Released.
    Released,
    /// Not this holder's.
    NotHeld,
    /// No answer: an error, or the keeper has given it up.
    Unknown,
    /// An error that proves that it never executed.
    Never,
}

/// Who stands in a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A tenure.
    Holder(HolderId),
    /// `evict/..` or `pause/..`.
    Operator,
}

/// A row as it was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RowSeen {
    /// The column `holder`.
    pub who: Who,
    /// The column `token`.
    pub token: i64,
    /// The column `acquired_at`.
    pub acquired_at: i64,
    /// The column `expires_at`.
    pub expires_at: i64,
    /// The column `released_at`.
    pub released_at: Option<i64>,
}

impl RowSeen {
    /// Whether nobody else can be granted it.
    #[must_use]
    pub const fn is_live(&self, now: i64) -> bool {
        self.expires_at > now
    }

    /// Whether it is this holder's.
    #[must_use]
    pub fn is_of(&self, holder: HolderId) -> bool {
        self.who == Who::Holder(holder)
    }
}

/// A statement leaves the keeper.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// Which.
    pub id: usize,
    /// Its kind.
    pub statement: Statement,
    /// Of which `Lease`.
    pub lease: usize,
    /// Which lease.
    pub name: usize,
    /// For which tenure.
    pub holder: HolderId,
    /// The minimum in it, in microseconds.
    pub at_least_for: i64,
    /// When, by the pod's clock.
    pub at: Moment,
}

/// The store has executed a statement.
#[derive(Debug, Clone, Copy)]
pub struct Executed {
    /// Which.
    pub sent: Sent,
    /// 0, or 1 for its late duplicate.
    pub copy: u8,
    /// The store's clock.
    pub now: i64,
    /// The ttl in it, in microseconds.
    pub ttl: i64,
    /// All rows before.
    pub before: Rows,
    /// All rows after.
    pub after: Rows,
    /// What the store said, whether or not anybody hears it.
    pub answer: Answer,
}

/// A poll of f begins.
#[derive(Debug, Clone, Copy)]
pub struct Polled {
    /// Under which tenure.
    pub holder: HolderId,
    /// Of which name.
    pub name: usize,
    /// Its token.
    pub token: i64,
    /// The name's row right now.
    pub row: Option<RowSeen>,
    /// The store's clock.
    pub now: i64,
    /// The pod's clock.
    pub at: Moment,
    /// What f was told.
    pub stop: Option<Told>,
    /// How long it says that the lease is certainly ours.
    pub left: Duration,
}

/// What `Held::is_live` says, of a clone that may have outlived its tenure.
#[derive(Debug, Clone, Copy)]
pub struct Claimed {
    /// Under which tenure.
    pub holder: HolderId,
    /// Its token.
    pub token: i64,
    /// Whether it says that the lease is ours.
    pub live: bool,
    /// The name's row right now.
    pub row: Option<RowSeen>,
    /// The store's clock.
    pub now: i64,
}

/// Why f was told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// `Stop::Lost`.
    Lost,
    /// `Stop::Overdue`.
    Overdue,
    /// `Stop::TimeLimit`.
    TimeLimit,
    /// `Stop::ShutDown`.
    ShutDown,
    /// `Stop::Keeper`, and whatever else there may be one day.
    Other,
}

impl From<&Stop> for Told {
    fn from(stop: &Stop) -> Self {
        match stop {
            Stop::Lost(_) => Self::Lost,
            Stop::Overdue { .. } => Self::Overdue,
            Stop::TimeLimit => Self::TimeLimit,
            Stop::ShutDown => Self::ShutDown,
            _ => Self::Other,
        }
    }
}

/// A call that a pod's user makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `Job::run`.
    Run,
    /// `Job::try_acquire`.
    TryAcquire,
    /// `Job::acquire`, waiting so long.
    Acquire(Duration),
    /// `Job::acquire`, waiting so long, after all faults have ended: it must succeed.
    Probe(Duration),
    /// `Guard::run`.
    GuardRun,
    /// `Guard::release`.
    Release,
    /// `Lease::shutdown` with this grace.
    ShutDown(Duration),
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// There is a guard.
    Granted,
    /// f did not start.
    Skipped,
    /// f has ended by itself.
    Ran,
    /// f has panicked.
    Panicked,
    /// f was dropped, or never started, for this reason.
    Dropped(Told),
    /// A release was answered, be it by an error.
    Released,
    /// A shutdown gave up so many names.
    ShutDown {
        /// How many.
        forsaken: usize,
    },
}

/// What happened.
#[derive(Debug, Clone)]
pub enum What {
    /// A pod makes a `Lease`.
    Born {
        /// Which lease.
        lease: usize,
        /// On which pod.
        pod: usize,
    },
    /// A pod's process stands still.
    Stands {
        /// Which.
        pod: usize,
    },
    /// It goes on.
    GoesOn {
        /// Which.
        pod: usize,
    },
    /// A pod is gone for ever.
    Crashed {
        /// Which.
        pod: usize,
    },
    /// A statement leaves the keeper.
    Sent(Sent),
    /// The store has executed a statement.
    Executed(Box<Executed>),
    /// The keeper has an answer, or has given the statement up.
    Answered {
        /// To which.
        sent: Sent,
        /// What it says.
        answer: Answer,
        /// When, by the pod's clock.
        at: Moment,
    },
    /// An operator has changed rows.
    Operator {
        /// What he did.
        what: &'static str,
        /// All rows before.
        before: Rows,
        /// All rows after.
        after: Rows,
    },
    /// The store's clock was moved.
    Stepped {
        /// How far off the true time it is now, in microseconds.
        off: i64,
    },
    /// A user makes a call.
    Called {
        /// Which.
        call: usize,
        /// Of which `Lease`.
        lease: usize,
        /// What.
        kind: Kind,
        /// When, by the pod's clock.
        at: Moment,
    },
    /// The call has returned.
    Returned {
        /// Which.
        call: usize,
        /// How.
        how: Ended,
        /// When, by the pod's clock.
        at: Moment,
    },
    /// The call's future was dropped.
    Abandoned {
        /// Which.
        call: usize,
    },
    /// A guard is in the user's hands.
    Taken {
        /// Of which tenure.
        holder: HolderId,
    },
    /// The guard is used to run f: its minimum counts only if f starts.
    Handed {
        /// Of which tenure.
        holder: HolderId,
    },
    /// The guard is gone, by `release` or by being dropped.
    LetGo {
        /// Of which tenure.
        holder: HolderId,
    },
    /// f is made.
    Started {
        /// Under which tenure.
        holder: HolderId,
        /// By which call.
        call: usize,
        /// When, by the pod's clock.
        at: Moment,
    },
    /// A poll of f begins.
    Polled(Box<Polled>),
    /// f is dropped, after its end or before.
    Gone {
        /// Under which tenure.
        holder: HolderId,
        /// By which call.
        call: usize,
        /// When, by the pod's clock.
        at: Moment,
    },
    /// A clone of `Held` was asked.
    Claimed(Box<Claimed>),
    /// Statements fail from now on, or no more.
    Outage(bool),
    /// No fault begins any more.
    Healed,
    /// Everything has had its time to come to rest.
    Settled {
        /// All rows.
        rows: Rows,
        /// The store's clock.
        now: i64,
    },
    /// The end of the world.
    Over,
}

impl fmt::Debug for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holder(id) => write!(f, "h{id}"),
            Self::Operator => f.write_str("operator"),
        }
    }
}

impl fmt::Debug for RowSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            who,
            token,
            acquired_at,
            expires_at,
            released_at,
        } = self;
        write!(f, "[{who:?} token {token} from {acquired_at} to {expires_at}")?;
        match released_at {
            Some(at) => write!(f, " released {at}]"),
            None => f.write_str("]"),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12} {:?}", self.at, self.what)
    }
}

impl History {
    /// A number that differs when anything in it does: FNV-1a over its text.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for seen in &self.seen {
            for byte in seen.to_string().bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        hash
    }
}

//! [`State`]: everything at one time: the pods with their real machines, the store with its real rows, and the wire.

use lease_core::tenure::{Cause, Phase, Tenure};
use lease_core::{Moment, Row, Rows, Token};

use super::bounds::Budget;
use super::rules::Broken;
use super::wire::Wire;

/// A state of the whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// Real time, in units.
    pub time: u32,
    /// How far the database's clock is ahead of real time, in units.
    pub ahead: i32,
    /// When a clock last went wrong.
    pub disturbed_at: Option<u32>,
    /// The real laws and the row.
    pub rows: Rows,
    /// The pods.
    pub pods: Vec<Pod>,
    /// What is in flight.
    pub wire: Wire,
    /// How much trouble is left.
    pub budget: Budget,
    /// Whom the store granted the lease last, retries not counted.
    pub granted: Option<Granted>,
    /// Rules that were seen broken.
    pub broken: Broken,
}

impl State {
    /// The row that all compete for.
    #[must_use]
    pub fn row(&self) -> Option<&Row> {
        self.rows.rows().values().next()
    }
}

/// Whom the store granted the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Granted {
    /// The token.
    pub token: Token,
    /// The pod.
    pub pod: u8,
    /// Which of that pod's tenures.
    pub serial: u8,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Pod {
    /// How far its clock is behind real time, in units.
    pub behind: u32,
    /// How many tenures it has asked for.
    pub asked: u8,
    /// Its tenures that are not over, in the order in which they were asked for.
    pub entries: Vec<Entry>,
    /// Whether it shuts down.
    pub shutdown: Shutdown,
    /// Its tenures, as bits, that may leave a row behind: the pod died, could not drop f, or gave up after two ttl.
    pub excused: u8,
    /// Its tenures, as bits, of which a release was sent.
    pub burned: u8,
}

/// How far a shutdown has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Shutdown {
    /// Nobody called it.
    #[default]
    No,
    /// f was told.
    Asked,
    /// The grace is over.
    GraceOver,
    /// What still ran was given up.
    Forsaken,
}

/// One tenure of a pod, with what keeper, guard and f know beside the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Which of the pod's tenures.
    pub serial: u8,
    /// The real machine.
    pub tenure: Tenure,
    /// Whether somebody waits for the grant.
    pub waited_for: bool,
    /// The grant's token.
    pub token: Option<Token>,
    /// When the last statement that was answered with a success had been sent. The rules count from it.
    pub base: Moment,
    /// What became of f.
    pub f: F,
    /// When f started, where there is a time limit.
    pub started_at: Option<Moment>,
    /// Why f was told to stop.
    pub stop: Option<Cause>,
    /// Whether f was told to be dropped.
    pub dropped: bool,
    /// Whether the last renewal had no answer.
    pub last_error: bool,
}

impl Entry {
    /// Whether f may have begun and is not gone.
    #[must_use]
    pub const fn has_f(&self) -> bool {
        matches!(self.f, F::Ready | F::Runs)
    }

    /// Whether it is in the keeper's hands as a lease that is held.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self.tenure.phase(), Phase::Held | Phase::Stopping)
    }

    /// Whether the name is taken in its process.
    #[must_use]
    pub const fn reserves(&self) -> bool {
        self.waited_for || self.has_f()
    }
}

/// What became of f.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum F {
    /// There is no grant yet.
    None,
    /// There is a guard, and f has not started.
    Ready,
    /// It started and is not gone.
    Runs,
    /// It is gone, or never was.
    Gone {
        /// Whether it had started.
        ran: bool,
    },
}

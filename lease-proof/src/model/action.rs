//! [`Action`]: what can happen next.

/// One step. `at` is a place among the pod's tenures, or among the messages in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A unit of time passes.
    Wait,
    /// A unit of time passes, and the pod's clock stands still.
    WaitWhileStandsStill {
        /// Whose clock.
        pod: usize,
    },
    /// The database's clock steps by units.
    StepClock {
        /// By how much.
        by: i32,
    },
    /// A pod begins a tenure.
    Ask {
        /// Which.
        pod: usize,
    },
    /// The keeper looks at a tenure of which the time has come: then, or late.
    Tick {
        /// Whose.
        pod: usize,
        /// Which.
        at: usize,
    },
    /// f starts.
    Start {
        /// Whose.
        pod: usize,
        /// Which.
        at: usize,
    },
    /// f is gone: it returned, or was dropped.
    Finish {
        /// Whose.
        pod: usize,
        /// Which.
        at: usize,
    },
    /// Whoever asked is gone.
    Abandon {
        /// Whose.
        pod: usize,
        /// Which.
        at: usize,
    },
    /// The application calls `shutdown`.
    ShutDown {
        /// Whose.
        pod: usize,
    },
    /// The grace of the shutdown is over.
    GraceOver {
        /// Whose.
        pod: usize,
    },
    /// What still runs after the grace is given up.
    Forsake {
        /// Whose.
        pod: usize,
    },
    /// The process dies.
    Crash {
        /// Which.
        pod: usize,
    },
    /// A statement executes.
    Execute {
        /// Which.
        at: usize,
    },
    /// A statement executes, and a copy of it is still on the way.
    ExecuteAndRepeat {
        /// Which.
        at: usize,
    },
    /// An answer arrives, soon or late.
    Deliver {
        /// Which.
        at: usize,
    },
    /// An answer is lost: the pod learns that it has none.
    LoseAnswer {
        /// Which.
        at: usize,
    },
    /// A statement is lost on the way: the pod learns that it has no answer.
    LoseRequest {
        /// Which.
        at: usize,
    },
    /// A pod gives up waiting; the statement may execute later.
    GiveUp {
        /// Which.
        at: usize,
    },
    /// A statement is not even sent, and the pod knows.
    Refuse {
        /// Which.
        at: usize,
    },
    /// An operator evicts the holder.
    Evict,
    /// An operator pauses the lease.
    Pause,
    /// An operator ends the pause.
    Resume,
}

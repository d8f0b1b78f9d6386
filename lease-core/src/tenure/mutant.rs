//! The rules of a tenure and of its keeper that can be broken on purpose, so that proofs can show that they would notice.

use crate::mutants::mutants;

mutants! {
    /// A rule broken on purpose. The text of each says what the pod then does wrong.
    TenureMutant {
        /// The ttl counts from the arrival of the answer, not from before the statement was sent.
        CountsFromTheReply,
        /// f may run until the row expires, whatever the clocks' drift.
        ForgetsTheDrift,
        /// The clock is not read before a poll of f.
        HasNoGate,
        /// f is started under a grant that came late, without a renewal.
        StartsALateGrant,
        /// One renewal without an answer ends the lease.
        StopsAfterOneError,
        /// A renewal without an answer is not sent again.
        NeverRetries,
        /// f is not told when its lease runs out, only dropped.
        NeverTellsThatItIsOverdue,
        /// A lost lease goes on.
        IgnoresALoss,
        /// A renewal's answer that comes after the time to drop f brings the lease back.
        RevivesAfterTheDrop,
        /// An acquire without an answer is not undone.
        NeverUndoes,
        /// An undo that finds nothing is not repeated.
        UndoesOnce,
        /// An undo keeps `at_least_for`.
        UndoKeepsTheMinimum,
        /// A release keeps no minimum.
        ReleaseForgetsTheMinimum,
        /// A grant that nobody took is kept.
        KeepsAnAbandonedGrant,
        /// A holder that was released is used for the next acquire.
        ReusesTheHolder,
        /// The lease is released when f is told to stop, not when it has ended.
        ReleasesBeforeTheEnd,
        /// A renewal is sent after the release.
        RenewsAfterTheRelease,
        /// A release or an undo without an answer is not repeated.
        ReleasesOnce,
        /// f has no time limit.
        ForgetsTheTimeLimit,
        /// A shutdown's grace never ends.
        ForgetsTheGrace,
        /// A lease whose f goes on after a shutdown's grace is released.
        ReleasesTheForsaken,
        /// The keeper waits for each answer before it does anything else.
        WaitsForEachAnswer,
    }
}

//! Each rule that is broken on purpose, the small run that notices it, and the rule that it breaks.

use lease_core::Mutant;
use lease_core::tenure::TenureMutant;

use super::rules::{
    grace_ends, granted_by_law, losses_are_told, minimum_is_kept, never_revived, nothing_after_the_release,
    nothing_left, one_holder, own_row_only, release_comes_last, released_is_final, starts_in_time, stops_are_true,
    time_limit_holds, tokens_grow, tries_again, under_a_live_row,
};
use super::world::Break::{self, Rows, Tenure};

/// A mutant and who notices it.
#[derive(Debug, Clone, Copy)]
pub struct Noticed {
    /// What is broken.
    pub broken: Break,
    /// The name of the small run.
    pub run: &'static str,
    /// The name of the rule.
    pub rule: &'static str,
}

const fn noticed(broken: Break, run: &'static str, rule: &'static str) -> Noticed {
    Noticed { broken, run, rule }
}

/// All that concern the machine, the gate and the laws that a tenure rests on.
pub const NOTICED: &[Noticed] = &[
    noticed(Tenure(TenureMutant::CountsFromTheReply), "late", under_a_live_row::NAME),
    noticed(Tenure(TenureMutant::ForgetsTheDrift), "clocks", under_a_live_row::NAME),
    noticed(Tenure(TenureMutant::HasNoGate), "late", under_a_live_row::NAME),
    noticed(Tenure(TenureMutant::StartsALateGrant), "late", starts_in_time::NAME),
    noticed(Tenure(TenureMutant::StopsAfterOneError), "faults", stops_are_true::NAME),
    noticed(Tenure(TenureMutant::NeverRetries), "faults", tries_again::NAME),
    noticed(
        Tenure(TenureMutant::NeverTellsThatItIsOverdue),
        "late",
        stops_are_true::NAME,
    ),
    noticed(Tenure(TenureMutant::IgnoresALoss), "evicted", losses_are_told::NAME),
    noticed(Tenure(TenureMutant::RevivesAfterTheDrop), "late", never_revived::NAME),
    noticed(Tenure(TenureMutant::NeverUndoes), "undo", nothing_left::NAME),
    noticed(Tenure(TenureMutant::UndoesOnce), "undo", nothing_left::NAME),
    noticed(Tenure(TenureMutant::UndoKeepsTheMinimum), "undo", minimum_is_kept::NAME),
    noticed(
        Tenure(TenureMutant::ReleaseForgetsTheMinimum),
        "endings",
        minimum_is_kept::NAME,
    ),
    noticed(
        Tenure(TenureMutant::KeepsAnAbandonedGrant),
        "endings",
        nothing_left::NAME,
    ),
    noticed(Tenure(TenureMutant::ReusesTheHolder), "tenures", under_a_live_row::NAME),
    noticed(
        Tenure(TenureMutant::ReleasesBeforeTheEnd),
        "late",
        release_comes_last::NAME,
    ),
    noticed(
        Tenure(TenureMutant::RenewsAfterTheRelease),
        "endings",
        nothing_after_the_release::NAME,
    ),
    noticed(Tenure(TenureMutant::ReleasesOnce), "undo", nothing_left::NAME),
    noticed(
        Tenure(TenureMutant::ForgetsTheTimeLimit),
        "endings",
        time_limit_holds::NAME,
    ),
    noticed(Tenure(TenureMutant::ForgetsTheGrace), "endings", grace_ends::NAME),
    noticed(
        Tenure(TenureMutant::ReleasesTheForsaken),
        "endings",
        release_comes_last::NAME,
    ),
    noticed(Rows(Mutant::ForgetsTheHolder), "late", one_holder::NAME),
    noticed(Rows(Mutant::ExpiredAfterTheLastInstant), "late", granted_by_law::NAME),
    noticed(Rows(Mutant::LiveToTheLastInstant), "late", tokens_grow::NAME),
    noticed(Rows(Mutant::TokenStays), "late", tokens_grow::NAME),
    noticed(Rows(Mutant::TokenFollowsTheClockAlone), "faults", tokens_grow::NAME),
    noticed(Rows(Mutant::RetryAfterExpiry), "repeats", tokens_grow::NAME),
    noticed(Rows(Mutant::RetryAfterRelease), "repeats", released_is_final::NAME),
    noticed(Rows(Mutant::RetryBumpsTheToken), "repeats", under_a_live_row::NAME),
    noticed(Rows(Mutant::RefusesTheRetry), "repeats", granted_by_law::NAME),
    noticed(Rows(Mutant::RenewRevives), "late", tokens_grow::NAME),
    noticed(Rows(Mutant::RenewAfterRelease), "undo", released_is_final::NAME),
    noticed(Rows(Mutant::RenewIgnoresTheHolder), "late", own_row_only::NAME),
    noticed(Rows(Mutant::ReleaseIgnoresTheHolder), "late", own_row_only::NAME),
    noticed(Rows(Mutant::ReleaseIgnoresTheMinimum), "endings", minimum_is_kept::NAME),
    noticed(Rows(Mutant::EvictKeepsTheHolder), "evicted", under_a_live_row::NAME),
    noticed(Rows(Mutant::EvictSwapsItsKinds), "evicted", under_a_live_row::NAME),
    noticed(Rows(Mutant::PauseForgetsTheHolder), "paused", under_a_live_row::NAME),
    noticed(Rows(Mutant::ResumeReleasesAnyone), "paused", under_a_live_row::NAME),
    noticed(Rows(Mutant::ResumeFreesAtOnce), "paused", under_a_live_row::NAME),
    noticed(Rows(Mutant::RenewDoesNotExtend), "late", under_a_live_row::NAME),
    noticed(Rows(Mutant::RenewBumpsTheToken), "late", tokens_grow::NAME),
    noticed(Rows(Mutant::GrantKeepsReleasedAt), "late", under_a_live_row::NAME),
    noticed(Rows(Mutant::ComparesLabelsAlone), "tenures", own_row_only::NAME),
    noticed(Rows(Mutant::ReleaseFreesNothing), "endings", minimum_is_kept::NAME),
    noticed(
        Rows(Mutant::MinimumCountsFromTheRelease),
        "endings",
        minimum_is_kept::NAME,
    ),
    noticed(Rows(Mutant::MinimumNeverExceedsTheTtl), "undo", minimum_is_kept::NAME),
    noticed(Rows(Mutant::ReleaseRaisesAnExpiredRow), "undo", minimum_is_kept::NAME),
];

/// Broken rules that no run here can notice, and why.
pub const OUT_OF_REACH: &[(Break, &str)] = &[(
    Tenure(TenureMutant::WaitsForEachAnswer),
    "a rule of the keeper's loop, which the model replaces: any tick may be late in it",
)];

//! The simulation judged by the mutants of lease-core: each must be caught, by the invariant that is about it.

use lease_core::Mutant as Store;
use lease_core::tenure::TenureMutant as Tenure;

use super::{Batch, Broken, Found};

/// Each mutant, and invariants that must catch it.
pub const CAUGHT: &[(Broken, &[&str])] = &[
    (Broken::Tenure(Tenure::CountsFromTheReply), &["live"]),
    (Broken::Tenure(Tenure::ForgetsTheDrift), &["live"]),
    (Broken::Tenure(Tenure::HasNoGate), &["live"]),
    (Broken::Tenure(Tenure::StartsALateGrant), &["fresh"]),
    (Broken::Tenure(Tenure::StopsAfterOneError), &["stops"]),
    (Broken::Tenure(Tenure::NeverRetries), &["stops"]),
    (Broken::Tenure(Tenure::NeverTellsThatItIsOverdue), &["stops"]),
    (Broken::Tenure(Tenure::IgnoresALoss), &["stops"]),
    (Broken::Tenure(Tenure::RevivesAfterTheDrop), &["clones"]),
    (Broken::Tenure(Tenure::NeverUndoes), &["orphans"]),
    (Broken::Tenure(Tenure::UndoesOnce), &["orphans"]),
    (Broken::Tenure(Tenure::UndoKeepsTheMinimum), &["minimum"]),
    (Broken::Tenure(Tenure::ReleaseForgetsTheMinimum), &["minimum"]),
    (Broken::Tenure(Tenure::KeepsAnAbandonedGrant), &["orphans"]),
    (Broken::Tenure(Tenure::ReusesTheHolder), &["burned"]),
    (Broken::Tenure(Tenure::ReleasesBeforeTheEnd), &["last"]),
    (Broken::Tenure(Tenure::RenewsAfterTheRelease), &["burned"]),
    (Broken::Tenure(Tenure::ReleasesOnce), &["orphans"]),
    (Broken::Tenure(Tenure::ForgetsTheTimeLimit), &["stops"]),
    (Broken::Tenure(Tenure::ForgetsTheGrace), &["stops"]),
    (Broken::Tenure(Tenure::ReleasesTheForsaken), &["last"]),
    (Broken::Tenure(Tenure::WaitsForEachAnswer), &["stops"]),
    (Broken::Store(Store::ForgetsTheHolder), &["tokens", "live", "clones"]),
    (Broken::Store(Store::LooksThenTakes), &["tokens"]),
    (Broken::Store(Store::RetryAfterExpiry), &["tokens"]),
    (Broken::Store(Store::RetryAfterRelease), &["tokens"]),
    (Broken::Store(Store::RetryBumpsTheToken), &["tokens"]),
    (Broken::Store(Store::TokenStays), &["tokens"]),
    (Broken::Store(Store::ExpiredAfterTheLastInstant), &["tokens"]),
    (Broken::Store(Store::RenewRevives), &["rows"]),
    (Broken::Store(Store::RenewAfterRelease), &["rows"]),
    (Broken::Store(Store::RenewIgnoresTheHolder), &["rows"]),
    (Broken::Store(Store::LiveToTheLastInstant), &["rows"]),
    (Broken::Store(Store::ReleaseIgnoresTheHolder), &["rows"]),
    (Broken::Store(Store::ReleaseIgnoresTheMinimum), &["rows"]),
    (Broken::Store(Store::ReleaseFreesNothing), &["rows"]),
    (Broken::Store(Store::WrongUnit), &["tokens"]),
];

/// What a hunt for one mutant found.
#[derive(Debug, Clone)]
pub struct Hunt {
    /// The first world with a violation.
    pub first: Option<Found>,
    /// All invariants that were violated in the worlds that were played.
    pub by: Vec<&'static str>,
    /// Those that should have been, and were not.
    pub missing: Vec<&'static str>,
    /// How many tenures it took until all had been.
    pub tenures: u64,
}

/// Plays worlds under a mutant until each of these invariants has caught it, or until there were `tenures`.
#[must_use]
pub fn hunt(broken: Broken, by: &[&'static str], from: u64, tenures: u64, threads: usize) -> Hunt {
    let is_caught_by = |batch: &Batch, name: &str| {
        let mut violations = batch.found.iter().flat_map(|found| &found.violations);
        violations.any(|violation| violation.invariant == name)
    };
    let all = |batch: &Batch| !batch.found.is_empty() && by.iter().all(|name| is_caught_by(batch, name));
    let batch = Batch::play(from, tenures, threads, Some(broken), all);
    let violations = batch.found.iter().flat_map(|found| &found.violations);
    let mut caught: Vec<_> = violations.map(|violation| violation.invariant).collect();
    caught.sort_unstable();
    caught.dedup();
    Hunt {
        missing: by.iter().copied().filter(|name| !caught.contains(name)).collect(),
        by: caught,
        tenures: batch.tally.tenures,
        first: batch.found.into_iter().next(),
    }
}

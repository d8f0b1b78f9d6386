//! The rules of [`Rows`](super::Rows) that can be broken on purpose, so that a suite can prove that it would notice.

use crate::mutants::mutants;

mutants! {
    /// A rule broken on purpose. The text of each says what the store then does wrong.
    Mutant {
        /// Expired is `expires_at < now`.
        ExpiredAfterTheLastInstant,
        /// A takeover keeps the old token.
        TokenStays,
        /// The token is the clock, also when the old token is ahead of it.
        TokenFollowsTheClockAlone,
        /// Tokens of a new row count from one, so that a deleted row resets them.
        TokensCountFromOne,
        /// The same holder's acquire after expiry keeps the old token, as if it were a retry.
        RetryAfterExpiry,
        /// A late duplicate of an acquire is granted on a released row that waits out its minimum.
        RetryAfterRelease,
        /// A retried acquire answers without extending.
        RetryDoesNotExtend,
        /// A retried acquire with a shorter ttl shortens.
        RetryShortens,
        /// A retried acquire is refused by its own row.
        RefusesTheRetry,
        /// A retried acquire gets a new token, and its own fence refuses the old one.
        RetryBumpsTheToken,
        /// A retried acquire starts the tenure anew.
        RetryMovesAcquiredAt,
        /// A live row is granted to anyone.
        ForgetsTheHolder,
        /// Holders are the same if their labels are.
        ComparesLabelsAlone,
        /// Holders are compared without regard to case.
        FoldsCaseOfHolders,
        /// A loser is not told who holds.
        BusyIsSilent,
        /// A takeover leaves the old release in the row.
        GrantKeepsReleasedAt,
        /// A takeover leaves the old note in the row.
        GrantKeepsNote,
        /// A takeover keeps the time of the grant before.
        GrantKeepsAcquiredAt,
        /// An acquire looks, waits, and then takes what it saw free.
        LooksThenTakes,
        /// A takeover forgets the name in its condition.
        TakesEveryExpiredRow,
        /// Anyone may renew.
        RenewIgnoresTheHolder,
        /// A renewal forgets the name in its condition.
        RenewsEveryRow,
        /// A renewal without a row makes one.
        RenewCreatesTheRow,
        /// A renewal answers without extending.
        RenewDoesNotExtend,
        /// Live is `expires_at >= now`, for a renewal.
        LiveToTheLastInstant,
        /// An expired row is renewed.
        RenewRevives,
        /// A released row that waits out its minimum is renewed.
        RenewAfterRelease,
        /// Each renewal adds a ttl to the old expiry.
        RenewAddsUp,
        /// A renewal with a shorter ttl shortens.
        RenewShortens,
        /// A renewal changes the token.
        RenewBumpsTheToken,
        /// A renewal starts the tenure anew.
        RenewMovesAcquiredAt,
        /// A lost renewal does not look why.
        LossIsAlwaysGone,
        /// A batch of renewals is answered in the order of the names.
        RenewAllSorts,
        /// Anyone may release.
        ReleaseIgnoresTheHolder,
        /// A release forgets the name in its condition.
        ReleasesEveryRow,
        /// A release answers `Released` without looking at what it matched.
        ReleaseNeverLooks,
        /// A release leaves the ttl to run out.
        ReleaseFreesNothing,
        /// A second release is taken.
        ReleasesTwice,
        /// A release deletes the row, and with it the order of tokens.
        ReleaseDeletes,
        /// A release does not set `released_at`.
        ReleaseLeavesNoMark,
        /// A release after expiry brings the minimum back to life.
        ReleaseRaisesAnExpiredRow,
        /// A release frees at once, whatever the minimum.
        ReleaseIgnoresTheMinimum,
        /// The minimum counts from the release, not from the grant.
        MinimumCountsFromTheRelease,
        /// A release never extends, so a minimum longer than the ttl is cut.
        MinimumNeverExceedsTheTtl,
        /// An eviction does not change the token.
        EvictKeepsTheToken,
        /// An eviction is undone by the next renewal.
        EvictKeepsTheHolder,
        /// An eviction does not keep its reason.
        EvictDropsTheReason,
        /// `evict` frees at once, `evict_now` does not.
        EvictSwapsItsKinds,
        /// An eviction takes an expired lease as well.
        EvictTakesTheFree,
        /// A pause does not hand on the displaced holder's expiry.
        PauseForgetsTheHolder,
        /// A second pause waits for the end of the first.
        SecondPauseAddsUp,
        /// A pause does not change the token.
        PauseKeepsTheToken,
        /// A resume releases a lease that is held, not paused.
        ResumeReleasesAnyone,
        /// A resume frees before the displaced holder's time is over.
        ResumeFreesAtOnce,
        /// A resume leaves the pause to run out.
        ResumeFreesNothing,
        /// A purge deletes live rows.
        PurgeDeletesTheLive,
        /// A purge deletes every expired row.
        PurgeIgnoresTheAge,
        /// A purge deletes rows whose token is ahead of the clock.
        PurgeForgetsAheadTokens,
        /// A purge deletes a row that a grant under way may not have seen.
        PurgeHasNoMargin,
        /// Names are compared without regard to case.
        FoldsCase,
        /// Names are compared without regard to accents.
        FoldsAccents,
        /// Names lose the dots at their ends.
        TrimsDots,
        /// Names are compared as patterns.
        NamesArePatterns,
        /// Names share 64 rows.
        StripesNames,
        /// Names are cut at 64 characters.
        CutsNames,
        /// The ttl is cut to whole seconds.
        WholeSeconds,
        /// The ttl is read in the wrong unit, and is a thousandth.
        WrongUnit,
        /// The ttl in microseconds is cut to 32 bits.
        ThirtyTwoBits,
        /// An acquire commits, and its reply is lost.
        LosesTheReply,
    }
}

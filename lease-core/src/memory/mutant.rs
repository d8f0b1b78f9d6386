//! The rules of [`Rows`](super::Rows) that can be broken on purpose, so that a suite can prove that it would notice.

/// Whether a rule is broken. Without the feature `mutants` it is `false` for the compiler, and nothing of it is left.
#[cfg(feature = "mutants")]
macro_rules! broken {
    ($self:ident, $rule:ident) => {
        $self.broken == Some(Mutant::$rule)
    };
}
#[cfg(not(feature = "mutants"))]
macro_rules! broken {
    ($self:ident, $rule:ident) => {
        false
    };
}
pub(super) use broken;

#[cfg(feature = "mutants")]
macro_rules! mutants {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A rule broken on purpose. The text of each says what the store then does wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Mutant { $($(#[$doc])* $name,)* }

        impl Mutant {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

#[cfg(feature = "mutants")]
mutants! {
    /// Expired is `expires_at < now`.
    ExpiredAfterTheLastInstant,
    /// A takeover keeps the old token.
    TokenStays,
    /// The token is the clock, also when the old token is ahead of it.
    TokenFollowsTheClockAlone,
    /// A late duplicate of an acquire is granted on a released row that waits out its minimum.
    RetryAfterRelease,
    /// A retried acquire answers without extending.
    RetryDoesNotExtend,
    /// A retried acquire gets a new token, and its own fence refuses the old one.
    RetryBumpsTheToken,
    /// A retried acquire starts the tenure anew.
    RetryMovesAcquiredAt,
    /// A live row is granted to anyone.
    ForgetsTheHolder,
    /// A loser is not told who holds.
    BusyIsSilent,
    /// A takeover leaves the old release in the row.
    GrantKeepsReleasedAt,
    /// A takeover leaves the old note in the row.
    GrantKeepsNote,
    /// A takeover forgets the name in its condition.
    TakesEveryExpiredRow,
    /// Anyone may renew.
    RenewIgnoresTheHolder,
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
    /// Anyone may release.
    ReleaseIgnoresTheHolder,
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
    /// A pause does not hand on the displaced holder's expiry.
    PauseForgetsTheHolder,
    /// A pause does not change the token.
    PauseKeepsTheToken,
    /// A resume releases a lease that is held, not paused.
    ResumeReleasesAnyone,
    /// A resume frees before the displaced holder's time is over.
    ResumeFreesAtOnce,
    /// A purge deletes live rows.
    PurgeDeletesTheLive,
    /// A purge deletes rows whose token is ahead of the clock.
    PurgeForgetsAheadTokens,
    /// Names are compared without regard to case.
    FoldsCase,
    /// Names are cut at 64 characters.
    CutsNames,
    /// The ttl is cut to whole seconds.
    WholeSeconds,
    /// An acquire commits, and its reply is lost.
    LosesTheReply,
}

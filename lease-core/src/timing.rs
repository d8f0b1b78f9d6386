//! [`Options`] become a [`Timing`]: the proof that the times of a tenure fit together.

use std::time::Duration;

use crate::tenure::TenureMutant;

/// The shortest ttl.
pub const MIN_TTL: Duration = Duration::from_millis(100);
/// The longest ttl, and the longest `at_least_for`.
pub const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The smallest drift and the smallest interval between renewals: below it a scheduler's hiccup is larger.
pub const MIN_STEP: Duration = Duration::from_millis(1);
/// How long a release or an undo may take: see [`Timing::release_limit`].
pub const RELEASE_LIMIT: Duration = Duration::from_secs(5);

/// How a lease is held. Made from its ttl; everything else has a default that fits.
///
/// ```
/// use std::time::Duration;
/// use lease_core::{Options, Timing};
/// let options = Options::from(Duration::from_secs(90)).at_least_for(Duration::from_secs(50));
/// assert_eq!(Timing::new(&options)?.renew_every(), Duration::from_secs(30));
/// # Ok::<(), lease_core::InvalidTiming>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[must_use]
pub struct Options {
    ttl: Duration,
    at_least_for: Duration,
    time_limit: Option<Duration>,
    renew_every: Option<Duration>,
    margin: Option<Duration>,
    drift: Option<Duration>,
    on_lost: OnLost,
    #[cfg(feature = "mutants")]
    broken: Option<TenureMutant>,
}

/// What happens to f when its lease is over and it has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnLost {
    /// f's future is dropped at `drop_at`, and no poll of it begins after.
    #[default]
    Drop,
    /// f is only told. It may then run beside the next holder; the fencing token is what remains.
    SignalOnly,
}

impl From<Duration> for Options {
    fn from(ttl: Duration) -> Self {
        let on_lost = OnLost::default();
        Self {
            ttl,
            at_least_for: Duration::ZERO,
            time_limit: None,
            renew_every: None,
            margin: None,
            drift: None,
            on_lost,
            #[cfg(feature = "mutants")]
            broken: None,
        }
    }
}

impl Options {
    /// How long from its grant the lease stays taken at the least, also when f ends sooner: its *minimum*, as other places say.
    ///
    /// It keeps unaligned pods from each running a short job once per interval. It may exceed the ttl; after a crash
    /// the ttl alone counts. A job that never started does not keep it.
    pub const fn at_least_for(mut self, at_least_for: Duration) -> Self {
        self.at_least_for = at_least_for;
        self
    }

    /// How long f may take from its start: told `margin` before, dropped at it. Without one a deadlocked f is renewed for ever.
    pub const fn time_limit(mut self, time_limit: Duration) -> Self {
        self.time_limit = Some(time_limit);
        self
    }

    /// How long after a renewal the next is sent. By default a third of the ttl, at most half of the ttl less the margin.
    pub const fn renew_every(mut self, renew_every: Duration) -> Self {
        self.renew_every = Some(renew_every);
        self
    }

    /// How long before the row's expiry f is told to stop. By default a sixth of the ttl, at least twice the drift.
    pub const fn margin(mut self, margin: Duration) -> Self {
        self.margin = Some(margin);
        self
    }

    /// How much the database's clock and ours may go apart within a ttl. By default 1 % of it, at least 2 ms.
    pub const fn drift(mut self, drift: Duration) -> Self {
        self.drift = Some(drift);
        self
    }

    /// Breaks one rule on purpose: for suites that prove that they would notice.
    #[cfg(feature = "mutants")]
    pub const fn break_rule(mut self, mutant: TenureMutant) -> Self {
        self.broken = Some(mutant);
        self
    }

    /// What happens to f when its lease is over.
    pub const fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.on_lost = on_lost;
        self
    }
}

/// Options of which the relations are proved. All times of a tenure come from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timing {
    ttl: Duration,
    at_least_for: Duration,
    time_limit: Option<Duration>,
    renew_every: Duration,
    margin: Duration,
    drift: Duration,
    on_lost: OnLost,
    #[cfg(feature = "mutants")]
    broken: Option<TenureMutant>,
}

impl Timing {
    /// Checks the options and fills in the defaults. Nothing given is changed.
    ///
    /// `margin` is at least twice `drift`, so that f has time between being told and being dropped. `renew_every` is at most half of
    /// the ttl less the margin, so that a renewal and one more try, each within its limit, fit in before f is told.
    ///
    /// # Errors
    /// [`InvalidTiming`] says which relation does not hold, with both numbers.
    pub fn new(options: &Options) -> Result<Self, InvalidTiming> {
        let ttl = options.ttl;
        within("ttl", ttl, MIN_TTL, MAX_TTL)?;
        within("at_least_for", options.at_least_for, Duration::ZERO, MAX_TTL)?;
        let drift = options
            .drift
            .unwrap_or_else(|| (ttl / 100).max(Duration::from_millis(2)));
        at_least("drift", drift, "its smallest value", MIN_STEP)?;
        // Before it is doubled, so that an absurd drift is an error and no overflow.
        at_most("drift", drift, "the ttl", ttl)?;
        let margin = options.margin.unwrap_or_else(|| (ttl / 6).max(drift * 2));
        at_least("margin", margin, "twice the drift", drift * 2)?;
        at_most("margin", margin, "half the ttl", ttl / 2)?;
        let most = (ttl - margin) / 2;
        let renew_every = options.renew_every.unwrap_or_else(|| (ttl / 3).min(most));
        at_least("renew_every", renew_every, "its smallest value", MIN_STEP)?;
        at_most("renew_every", renew_every, "half of ttl less margin", most)?;
        if let Some(time_limit) = options.time_limit {
            at_least(
                "time_limit",
                time_limit,
                "the margin and a millisecond",
                margin + MIN_STEP,
            )?;
        }
        let Options {
            at_least_for,
            time_limit,
            on_lost,
            ..
        } = *options;
        Ok(Self {
            ttl,
            at_least_for,
            time_limit,
            renew_every,
            margin,
            drift,
            on_lost,
            #[cfg(feature = "mutants")]
            broken: options.broken,
        })
    }

    /// For a job that is repeated at this interval: with this minimum, unless it has one.
    #[cfg(feature = "tokio")]
    pub(crate) fn every(mut self, every: Duration, minimum: Duration) -> Result<Self, InvalidTiming> {
        within("the interval", every, MIN_TTL, MAX_TTL)?;
        if self.at_least_for.is_zero() {
            self.at_least_for = minimum;
        }
        Ok(self)
    }

    /// Whether this rule is broken. Without the feature `mutants` it is `false` for the compiler, and nothing of it is
    /// left.
    pub(crate) const fn breaks(&self, rule: TenureMutant) -> bool {
        #[cfg(feature = "mutants")]
        return matches!(self.broken, Some(broken) if broken as u8 == rule as u8);
        #[cfg(not(feature = "mutants"))]
        {
            let _ = rule;
            false
        }
    }

    /// How long a grant or renewal lasts in the row.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// See [`Options::at_least_for`].
    #[must_use]
    pub const fn at_least_for(&self) -> Duration {
        self.at_least_for
    }

    /// See [`Options::time_limit`].
    #[must_use]
    pub const fn time_limit(&self) -> Option<Duration> {
        self.time_limit
    }

    /// See [`Options::renew_every`].
    #[must_use]
    pub const fn renew_every(&self) -> Duration {
        self.renew_every
    }

    /// See [`Options::margin`].
    #[must_use]
    pub const fn margin(&self) -> Duration {
        self.margin
    }

    /// See [`Options::drift`].
    #[must_use]
    pub const fn drift(&self) -> Duration {
        self.drift
    }

    /// See [`Options::on_lost`].
    #[must_use]
    pub const fn on_lost(&self) -> OnLost {
        self.on_lost
    }

    /// How long after a failed renewal the next is sent, before jitter: a twelfth of the ttl.
    #[must_use]
    pub fn retry_every(&self) -> Duration {
        self.ttl / 12
    }

    /// How long an acquire or a renewal may take: a quarter of ttl less margin, at most two seconds.
    #[must_use]
    pub fn limit(&self) -> Duration {
        ((self.ttl - self.margin) / 4).min(Duration::from_secs(2))
    }

    /// How long a release or an undo may take: a ttl, at most [`RELEASE_LIMIT`]. After a ttl the row is free without it, while a
    /// release that hangs keeps a connection from those who renew.
    #[must_use]
    pub fn release_limit(&self) -> Duration {
        self.ttl.min(RELEASE_LIMIT)
    }

    /// How long after an unsettled undo or release the next is sent: a third of the ttl, at most one second.
    #[must_use]
    pub fn undo_every(&self) -> Duration {
        (self.ttl / 3).min(Duration::from_secs(1))
    }
}

/// Options that can't hold. The text has both numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTiming {
    /// A value is below what it must be.
    #[error("{what} is {value:?}, but must be at least {bound:?}, {rule}")]
    TooSmall {
        /// Which option.
        what: &'static str,
        /// Its value.
        value: Duration,
        /// What the bound is.
        rule: &'static str,
        /// The bound.
        bound: Duration,
    },
    /// A value is above what it may be.
    #[error("{what} is {value:?}, but must be at most {bound:?}, {rule}")]
    TooLarge {
        /// Which option.
        what: &'static str,
        /// Its value.
        value: Duration,
        /// What the bound is.
        rule: &'static str,
        /// The bound.
        bound: Duration,
    },
}

fn within(what: &'static str, value: Duration, min: Duration, max: Duration) -> Result<(), InvalidTiming> {
    at_least(what, value, "its smallest value", min)?;
    at_most(what, value, "its largest value", max)
}

fn at_least(what: &'static str, value: Duration, rule: &'static str, bound: Duration) -> Result<(), InvalidTiming> {
    if value < bound {
        Err(InvalidTiming::TooSmall {
            what,
            value,
            rule,
            bound,
        })
    } else {
        Ok(())
    }
}

fn at_most(what: &'static str, value: Duration, rule: &'static str, bound: Duration) -> Result<(), InvalidTiming> {
    if value > bound {
        Err(InvalidTiming::TooLarge {
            what,
            value,
            rule,
            bound,
        })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn defaults_are_fractions_of_the_ttl() {
        let timing = Timing::new(&Options::from(ms(60_000))).unwrap();
        assert_eq!(timing.ttl(), ms(60_000));
        assert_eq!(timing.drift(), ms(600));
        assert_eq!(timing.margin(), ms(10_000));
        assert_eq!(timing.renew_every(), ms(20_000));
        assert_eq!(timing.retry_every(), ms(5_000));
        assert_eq!(timing.limit(), ms(2_000));
        assert_eq!(timing.undo_every(), ms(1_000));
        assert_eq!(timing.at_least_for(), Duration::ZERO);
        assert_eq!(timing.time_limit(), None);
        assert_eq!(timing.on_lost(), OnLost::Drop);
        let short = Timing::new(&Options::from(ms(120))).unwrap();
        assert_eq!(
            (short.drift(), short.limit(), short.undo_every()),
            (ms(2), ms(25), ms(40))
        );
    }

    #[test]
    fn the_bounds_themselves_are_legal_and_one_step_beyond_is_not() {
        let ns = Duration::from_nanos(1);
        let ok = |options: Options| Timing::new(&options).is_ok();
        let ttl = || Options::from(ms(12_000));
        assert!(ok(Options::from(MIN_TTL)) && !ok(Options::from(MIN_TTL - ns)));
        assert!(ok(Options::from(MAX_TTL)) && !ok(Options::from(MAX_TTL + ns)));
        assert!(ok(ttl().at_least_for(MAX_TTL)) && !ok(ttl().at_least_for(MAX_TTL + ns)));
        assert!(ok(ttl().drift(MIN_STEP)) && !ok(ttl().drift(MIN_STEP - ns)));
        assert!(ok(ttl().margin(ms(240))) && !ok(ttl().margin(ms(240) - ns)));
        assert!(ok(ttl().margin(ms(6_000))) && !ok(ttl().margin(ms(6_000) + ns)));
        assert!(ok(ttl().renew_every(MIN_STEP)) && !ok(ttl().renew_every(MIN_STEP - ns)));
        assert!(ok(ttl().renew_every(ms(5_000))) && !ok(ttl().renew_every(ms(5_000) + ns)));
        assert!(ok(ttl().time_limit(ms(2_001))) && !ok(ttl().time_limit(ms(2_001) - ns)));
        assert!(ok(ttl().time_limit(Duration::MAX)));
        assert!(!ok(ttl().drift(Duration::MAX)) && !ok(ttl().margin(Duration::MAX)));
        assert!(!ok(Options::from(Duration::ZERO)) && !ok(Options::from(Duration::MAX)));
    }

    #[test]
    fn the_longest_ttl_is_thirty_days() {
        assert_eq!(MAX_TTL.as_secs(), 2_592_000);
    }

    #[test]
    fn a_refusal_has_both_numbers() {
        let refusal = Timing::new(&Options::from(ms(12_000)).renew_every(ms(7_000))).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "renew_every is 7s, but must be at most 5s, half of ttl less margin"
        );
        let refusal = Timing::new(&Options::from(ms(50))).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "ttl is 50ms, but must be at least 100ms, its smallest value"
        );
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_leaves_room_for_a_renewal_and_one_retry(
            ttl in 100_000u64..10_000_000, drift in proptest::option::of(1_000u64..100_000),
            margin in proptest::option::of(2_000u64..5_000_000), renew in proptest::option::of(1_000u64..5_000_000),
        ) {
            let us = Duration::from_micros;
            let mut options = Options::from(us(ttl));
            options.drift = drift.map(us);
            options.margin = margin.map(us);
            options.renew_every = renew.map(us);
            if let Ok(timing) = Timing::new(&options) {
                prop_assert!(timing.drift() * 2 <= timing.margin());
                prop_assert!(timing.renew_every() + timing.limit() * 2 <= timing.ttl() - timing.margin());
                prop_assert!(timing.limit() > Duration::ZERO);
            }
        }
    }
}

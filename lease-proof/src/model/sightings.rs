//! [`Sightings`]: how often something remarkable happened, so that a run shows that it went there.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use lease_core::tenure::{Cause, Effect, Event, Phase, Refusal, Settlement};

use super::observe::{Executed, Observed, Told};
use super::wire::{Answer, Statement};

macro_rules! sights {
    ($($(#[doc = $says:literal])* $sight:ident,)*) => {
        /// Something remarkable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Sight { $($(#[doc = $says])* $sight,)* }

        impl Sight {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$sight,)*];
        }
    };
}

sights! {
    /// A lease that nobody renewed is granted to another.
    Takeover,
    /// An acquire of the row's own holder is granted once more.
    Retry,
    /// A renewal is answered after one that was not.
    RenewedAfterAnError,
    /// f is dropped because no renewal was answered in time.
    OverdueThenDropped,
    /// A renewal's answer comes after the time to drop f, and changes nothing.
    RenewedTooLate,
    /// An undo finds what the acquire without an answer had done.
    Undone,
    /// An undo or a release is not repeated any more, since the row has long expired.
    GaveUp,
    /// A late grant is renewed first, and then handed out.
    Confirmed,
    /// A grant is given back, because it came too late.
    GivenBack,
    /// A holder is told that it was evicted or paused.
    Evicted,
    /// A poll begins after the eviction, in the time that is left.
    PolledWhileEvicted,
    /// f is told that its time is over.
    TimedOut,
    /// f could not be dropped in a shutdown's time.
    Forsaken,
    /// A released row is busy until its time is over.
    BusyAfterRelease,
}

/// How often each was seen. One transition is counted as often as the checker takes it.
#[derive(Debug, Default)]
pub struct Sightings([AtomicU64; Sight::ALL.len()]);

impl Sightings {
    /// How often.
    #[must_use]
    pub fn of(&self, sight: Sight) -> u64 {
        self.0[sight as usize].load(Ordering::Relaxed)
    }

    pub(super) fn see(&self, observed: &Observed<'_>) {
        match observed {
            Observed::Asked(_) => {}
            Observed::Executed(executed) => self.executed(executed),
            Observed::Told(told) => self.told(told),
        }
    }

    pub(super) fn count(&self, sight: Sight, seen: bool) {
        if seen {
            self.0[sight as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    fn executed(&self, executed: &Executed<'_>) {
        if executed.statement != Statement::Acquire {
            return;
        }
        let from = executed.before.filter(|row| row.holder != executed.holder);
        let unreleased = from.is_some_and(|row| row.released_at.is_none());
        self.count(Sight::Takeover, executed.granted() && unreleased);
        self.count(Sight::Retry, executed.granted() && executed.own_before().is_some());
        let released = executed.live_before().and_then(|row| row.released_at);
        self.count(
            Sight::BusyAfterRelease,
            executed.answer == Answer::Busy && released.is_some(),
        );
    }

    fn told(&self, told: &Told<'_>) {
        let before = told.before.tenure.phase();
        let held = told.before.is_running();
        let wants = |effect: Effect| told.effects.contains(&effect);
        let grants = told.effects.iter().any(|effect| matches!(effect, Effect::Grant(_)));
        let late = held && told.now >= told.before.tenure.drop_at();
        let renewed = held && told.event == Event::Renewed;
        self.count(Sight::RenewedAfterAnError, renewed && !late && told.before.last_error);
        self.count(Sight::RenewedTooLate, renewed && late);
        let overdue = told.after.stop == Some(Cause::Overdue);
        self.count(Sight::OverdueThenDropped, overdue && wants(Effect::Drop));
        self.count(Sight::Undone, before == Phase::Undoing && told.event == Event::Released);
        let repeated = matches!(before, Phase::Undoing | Phase::Releasing) && told.event == Event::Tick;
        let ended = told.after.tenure.phase() == Phase::Ended;
        self.count(Sight::GaveUp, repeated && ended);
        self.count(Sight::Confirmed, before == Phase::Confirming && grants);
        self.count(Sight::GivenBack, wants(Effect::Refuse(Refusal::Late)));
        self.count(Sight::Evicted, held && told.event == Event::Lost { evicted: true });
        self.count(Sight::TimedOut, wants(Effect::Stop(Cause::TimeLimit)));
        self.count(Sight::Forsaken, wants(Effect::Settle(Settlement::Forsaken)));
    }
}

impl fmt::Display for Sightings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seen = Sight::ALL.iter().filter(|sight| self.of(**sight) > 0).peekable();
        while let Some(sight) = seen.next() {
            write!(f, "{sight:?}: {}", self.of(*sight))?;
            if seen.peek().is_some() {
                f.write_str(", ")?;
            }
        }
        Ok(())
    }
}

//! [`Tenure`]: the state machine of one stretch from grant to end. No clock, no await, no SQL.
//!
//! It takes events with times and answers with effects; nothing else decides when a lease is renewed, stopped for want of a renewal,
//! dropped or undone. The keeper brings it events and carries
//! out its effects; a model checker can do both. Its table of transitions is `docs/adr/0001-tenure.md`.

use std::time::Duration;

use crate::{Moment, Timing, Token};

mod effect;
mod event;
mod hold;
mod mutant;
mod repeat;
#[cfg(test)]
mod tests;

pub use effect::{Call, Cause, Effect, Refusal, Settlement};
pub use event::{Event, Spread};
use hold::Hold;
#[cfg(not(feature = "mutants"))]
pub(crate) use mutant::TenureMutant;
#[cfg(feature = "mutants")]
pub use mutant::TenureMutant;
use repeat::Repeat;

/// One tenure: from the acquire that was sent to the release that was answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenure {
    timing: Timing,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum State {
    Asking {
        sent_at: Moment,
        abandoned: bool,
    },
    Confirming {
        token: Token,
        base: Moment,
        sent_at: Moment,
    },
    Held(Hold),
    Repeating(Repeat),
    Ended,
}

/// Where a tenure stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The acquire is sent and not answered.
    Asking,
    /// Granted, but late: a renewal must be answered before f may start.
    Confirming,
    /// Ours. f may run.
    Held,
    /// f was told to stop and has not ended. Renewal goes on, unless the lease is lost or dropped.
    Stopping,
    /// f has ended, or never started. The release is repeated until it is answered.
    Releasing,
    /// An acquire had no answer and may still take effect. The release is repeated until it finds something.
    Undoing,
    /// Nothing more to do.
    Ended,
}

impl Tenure {
    /// A tenure whose acquire the caller sends right after, `sent_at` having been read just before.
    #[must_use]
    pub const fn ask(timing: Timing, sent_at: Moment) -> Self {
        Self {
            timing,
            state: State::Asking {
                sent_at,
                abandoned: false,
            },
        }
    }

    /// How it is held.
    #[must_use]
    pub const fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Where it stands.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        match &self.state {
            State::Asking { .. } => Phase::Asking,
            State::Confirming { .. } => Phase::Confirming,
            State::Held(hold) if hold.is_stopping() => Phase::Stopping,
            State::Held(_) => Phase::Held,
            State::Repeating(repeat) if repeat.is_undo() => Phase::Undoing,
            State::Repeating(_) => Phase::Releasing,
            State::Ended => Phase::Ended,
        }
    }

    /// Whether a renewal that it has asked for is still of use.
    #[must_use]
    pub const fn is_renewing(&self) -> bool {
        match &self.state {
            State::Confirming { .. } => true,
            State::Held(hold) => hold.is_renewing(),
            _ => false,
        }
    }

    /// From when on no poll of f may begin; [`Moment::ZERO`] while there is no lease.
    #[must_use]
    pub const fn drop_at(&self) -> Moment {
        match &self.state {
            State::Held(hold) => hold.drop_at(),
            _ => Moment::ZERO,
        }
    }

    /// When to come back with [`Event::Tick`], if nothing else happens.
    #[must_use]
    pub fn next_at(&self) -> Option<Moment> {
        match &self.state {
            State::Asking { .. } | State::Ended => None,
            State::Confirming { base, .. } => Some(self.stop_at(*base)),
            State::Held(hold) => hold.next_at(&self.timing),
            State::Repeating(repeat) => repeat.next_at(),
        }
    }

    /// Takes an event at `now` and adds what is to be done to `effects`. An event that does not fit changes nothing.
    pub fn handle(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        match &mut self.state {
            State::Asking { .. } => self.asking(now, event, effects),
            State::Confirming { .. } => self.confirming(now, event, effects),
            State::Held(hold) => match hold.handle(&self.timing, now, event, effects) {
                hold::Next::Stay => {}
                hold::Next::Release { at_least_for } => {
                    self.repeat(Repeat::release(&self.timing, now, at_least_for), effects);
                }
                hold::Next::End(settlement) => {
                    effects.push(Effect::Settle(settlement));
                    self.state = State::Ended;
                }
            },
            State::Repeating(repeat) => {
                if repeat.handle(&self.timing, now, event, effects) {
                    self.state = State::Ended;
                }
            }
            State::Ended => {}
        }
    }

    fn asking(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        let keeps = self.breaks(TenureMutant::KeepsAnAbandonedGrant);
        let State::Asking { sent_at, abandoned } = &mut self.state else {
            return;
        };
        let (base, gone) = (*sent_at, *abandoned);
        match event {
            Event::Granted(_) if gone && keeps => self.state = State::Ended,
            Event::Granted(_) if gone => self.give_back(now, effects),
            Event::Granted(token) => self.granted(now, base, token, effects),
            Event::Busy => {
                if !gone {
                    effects.push(Effect::Refuse(Refusal::Busy));
                }
                self.state = State::Ended;
            }
            Event::AcquireFailed { may_have_executed } => {
                if !gone {
                    effects.push(Effect::Refuse(Refusal::Failed));
                }
                if may_have_executed && !self.breaks(TenureMutant::NeverUndoes) {
                    self.repeat(Repeat::undo(&self.timing, now), effects);
                } else {
                    self.state = State::Ended;
                }
            }
            // The answer is awaited all the same: it says whether there is anything to undo.
            Event::Abandoned => *abandoned = true,
            Event::ShutDown if !gone => {
                *abandoned = true;
                effects.push(Effect::Refuse(Refusal::ShuttingDown));
            }
            _ => {}
        }
    }

    fn confirming(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        let State::Confirming { token, base, sent_at } = self.state else {
            return;
        };
        let refusal = match event {
            // A second late answer ends it: otherwise a store that is slower than `renew_every` would keep the lease
            // renewed for ever, f never started, and whoever waits without an answer.
            Event::Renewed if self.is_late(now, sent_at) => Some(Refusal::Late),
            Event::Renewed => return self.granted(now, sent_at, token, effects),
            Event::Lost { .. } => {
                effects.push(Effect::Refuse(Refusal::Busy));
                self.state = State::Ended;
                return;
            }
            Event::Tick if now >= self.stop_at(base) => Some(Refusal::Late),
            Event::RenewFailed(_) => Some(Refusal::Failed),
            Event::ShutDown => Some(Refusal::ShuttingDown),
            Event::Abandoned => None,
            _ => return,
        };
        effects.extend(refusal.map(Effect::Refuse));
        self.give_back(now, effects);
    }

    /// A grant, or the renewal of a late one, that counts from `base`: f may start only well before the next renewal.
    fn granted(&mut self, now: Moment, base: Moment, token: Token, effects: &mut Vec<Effect>) {
        let base = if self.breaks(TenureMutant::CountsFromTheReply) {
            now
        } else {
            base
        };
        if now >= self.stop_at(base) && !self.breaks(TenureMutant::StartsALateGrant) {
            effects.push(Effect::Refuse(Refusal::Late));
            self.give_back(now, effects);
        } else if self.is_late(now, base) {
            effects.push(Effect::Send(Call::Renew));
            self.state = State::Confirming {
                token,
                base,
                sent_at: now,
            };
        } else {
            effects.push(Effect::Grant(token));
            self.state = State::Held(Hold::new(&self.timing, base));
        }
    }

    /// Whether f may no longer start under an answer to a statement that was sent at `sent_at`.
    fn is_late(&self, now: Moment, sent_at: Moment) -> bool {
        now >= sent_at + self.timing.renew_every() && !self.breaks(TenureMutant::StartsALateGrant)
    }

    /// Releases a grant that nobody used.
    fn give_back(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        self.repeat(Repeat::give_back(&self.timing, now), effects);
    }

    fn repeat(&mut self, repeat: Repeat, effects: &mut Vec<Effect>) {
        effects.push(repeat.call());
        if self.breaks(TenureMutant::RenewsAfterTheRelease) {
            effects.push(Effect::Send(Call::RenewAlone));
        }
        self.state = State::Repeating(repeat);
    }

    const fn breaks(&self, rule: TenureMutant) -> bool {
        self.timing.breaks(rule)
    }

    fn stop_at(&self, base: Moment) -> Moment {
        base + stop_after(&self.timing)
    }
}

/// How long after a grant or renewal was sent f is told to stop.
fn stop_after(timing: &Timing) -> Duration {
    timing.ttl() - timing.margin()
}

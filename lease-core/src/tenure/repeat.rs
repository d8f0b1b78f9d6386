//! [`Repeat`]: the end of a tenure, a release that is sent until it is settled.

use std::time::Duration;

use super::{Call, Effect, Event, Settlement, TenureMutant};
use crate::{Moment, Timing};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Repeat {
    /// The acquire had no answer: it may execute after a release that found nothing.
    undo: bool,
    at_least_for: Duration,
    /// When the next release is to be sent; none while one is under way.
    next_at: Option<Moment>,
    /// When to give up: the row has expired long before.
    until: Moment,
    /// Whether somebody still waits to be told.
    untold: bool,
}

impl Repeat {
    /// f has ended.
    pub(super) fn release(timing: &Timing, now: Moment, at_least_for: Duration) -> Self {
        Self {
            undo: false,
            at_least_for,
            next_at: None,
            until: now + timing.ttl() * 2,
            untold: true,
        }
    }

    /// A grant that nobody used: no minimum, nobody waits.
    pub(super) fn give_back(timing: &Timing, now: Moment) -> Self {
        Self {
            untold: false,
            ..Self::release(timing, now, Duration::ZERO)
        }
    }

    /// An acquire without an answer.
    pub(super) fn undo(timing: &Timing, now: Moment) -> Self {
        let keeps = timing.breaks(TenureMutant::UndoKeepsTheMinimum);
        Self {
            undo: true,
            at_least_for: if keeps { timing.at_least_for() } else { Duration::ZERO },
            ..Self::give_back(timing, now)
        }
    }

    pub(super) const fn is_undo(&self) -> bool {
        self.undo
    }

    pub(super) const fn call(&self) -> Effect {
        Effect::Send(Call::Release {
            at_least_for: self.at_least_for,
        })
    }

    pub(super) fn next_at(&self) -> Option<Moment> {
        self.next_at.map(|next_at| next_at.min(self.until))
    }

    /// Answers whether it is settled.
    pub(super) fn handle(&mut self, timing: &Timing, now: Moment, event: Event, effects: &mut Vec<Effect>) -> bool {
        match event {
            Event::Released => self.tell(Settlement::Released, effects),
            Event::NotHeld => {
                self.tell(Settlement::NotHeld, effects);
                self.wait(timing, now);
                return !self.undo || timing.breaks(TenureMutant::UndoesOnce);
            }
            Event::ReleaseFailed => {
                self.tell(Settlement::Failed, effects);
                self.wait(timing, now);
                return timing.breaks(TenureMutant::ReleasesOnce);
            }
            Event::Tick if self.next_at.is_some() && now >= self.until => {}
            Event::Tick if self.next_at.is_some_and(|next_at| now >= next_at) => {
                self.next_at = None;
                effects.push(self.call());
                return false;
            }
            _ => return false,
        }
        true
    }

    fn wait(&mut self, timing: &Timing, now: Moment) {
        self.next_at = Some(now + timing.undo_every());
    }

    fn tell(&mut self, settlement: Settlement, effects: &mut Vec<Effect>) {
        if self.untold {
            self.untold = false;
            effects.push(Effect::Settle(settlement));
        }
    }
}

//! [`Hold`]: the part of a tenure in which f may run.

use std::time::Duration;

use super::{Call, Cause, Effect, Event, Settlement, TenureMutant, stop_after};
use crate::{Moment, Timing};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Hold {
    /// When the last grant or renewal that was answered had been sent: from then the ttl counts.
    base: Moment,
    /// When the renewal that is under way was sent.
    renewing: Option<Moment>,
    /// When the next renewal is to be sent.
    renew_at: Moment,
    drop_at: Moment,
    started_at: Option<Moment>,
    stop: Option<Cause>,
    /// A renewal was answered: lost. Nothing renews any more, and there is nothing to release.
    lost: bool,
    /// `drop_at` has passed. Nothing renews any more, and no answer brings the tenure back.
    dropped: bool,
}

/// What follows an event.
pub(super) enum Next {
    Stay,
    Release { at_least_for: Duration },
    End(Settlement),
}

impl Hold {
    pub(super) fn new(timing: &Timing, base: Moment) -> Self {
        Self {
            base,
            renewing: None,
            renew_at: base + timing.renew_every(),
            drop_at: drop_at(timing, base),
            started_at: None,
            stop: None,
            lost: false,
            dropped: false,
        }
    }

    pub(super) const fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    pub(super) const fn is_renewing(&self) -> bool {
        self.renewing.is_some() && !self.dropped
    }

    pub(super) const fn drop_at(&self) -> Moment {
        self.drop_at
    }

    pub(super) fn next_at(&self, timing: &Timing) -> Option<Moment> {
        if self.dropped {
            return None;
        }
        let stops = self
            .stops(timing)
            .into_iter()
            .flatten()
            .map(|(at, _)| at)
            .filter(|_| self.stop.is_none());
        let renewal = (!self.lost && self.renewing.is_none()).then_some(self.renew_at);
        stops.chain(renewal).chain([self.drop_at]).min()
    }

    pub(super) fn handle(&mut self, timing: &Timing, now: Moment, event: Event, effects: &mut Vec<Effect>) -> Next {
        let next = self.take(timing, now, event, effects);
        if self.is_stopping() && timing.breaks(TenureMutant::ReleasesBeforeTheEnd) {
            return Next::Release {
                at_least_for: timing.at_least_for(),
            };
        }
        next
    }

    fn take(&mut self, timing: &Timing, now: Moment, event: Event, effects: &mut Vec<Effect>) -> Next {
        match event {
            Event::Tick => self.tick(timing, now, effects),
            Event::LeftOut if self.renewing.is_some() && !self.dropped => {
                self.renewing = Some(now);
                effects.push(Effect::Send(Call::RenewAlone));
            }
            Event::Gather => self.renew(now + timing.renew_every() / 2, now, effects),
            Event::Renewed => self.renewed(timing, now),
            Event::RenewFailed(_) if timing.breaks(TenureMutant::NeverRetries) => {}
            Event::RenewFailed(spread) => {
                if timing.breaks(TenureMutant::StopsAfterOneError) {
                    self.tell(Cause::Overdue, effects);
                }
                self.renewing = None;
                self.renew_at = now + spread.of(timing.retry_every());
            }
            Event::Lost { .. } if timing.breaks(TenureMutant::IgnoresALoss) => self.renewing = None,
            Event::Lost { evicted } => self.lose(now, evicted, effects),
            Event::Started => {
                self.started_at.get_or_insert(now);
                self.apply_time_limit(timing);
            }
            Event::ShutDown => self.tell(Cause::ShutDown, effects),
            Event::GraceOver if timing.breaks(TenureMutant::ForgetsTheGrace) => {}
            Event::GraceOver => {
                self.tell(Cause::ShutDown, effects);
                self.drop_at = self.drop_at.min(now);
                self.drop(effects);
            }
            Event::Finished { .. } | Event::Abandoned if self.lost => return Next::End(Settlement::NotHeld),
            Event::Finished { ran: true } => {
                let forgets = timing.breaks(TenureMutant::ReleaseForgetsTheMinimum);
                let at_least_for = if forgets { Duration::ZERO } else { timing.at_least_for() };
                return Next::Release { at_least_for };
            }
            Event::Finished { ran: false } | Event::Abandoned => {
                return Next::Release {
                    at_least_for: Duration::ZERO,
                };
            }
            Event::Forsaken if timing.breaks(TenureMutant::ReleasesTheForsaken) => {
                return Next::Release {
                    at_least_for: timing.at_least_for(),
                };
            }
            Event::Forsaken => return Next::End(Settlement::Forsaken),
            _ => {}
        }
        Next::Stay
    }

    /// A stop fires first, then a renewal is sent.
    fn tick(&mut self, timing: &Timing, now: Moment, effects: &mut Vec<Effect>) {
        let due = self
            .stops(timing)
            .into_iter()
            .flatten()
            .filter(|(at, _)| now >= *at)
            .min_by_key(|(at, _)| *at);
        if let Some((_, cause)) = due {
            self.tell(cause, effects);
        }
        if now >= self.drop_at {
            self.drop(effects);
        }
        self.renew(now, now, effects);
    }

    /// Sends a renewal if it is due by then, and none is under way.
    fn renew(&mut self, due_by: Moment, now: Moment, effects: &mut Vec<Effect>) {
        if !self.lost && !self.dropped && self.renewing.is_none() && due_by >= self.renew_at {
            self.renewing = Some(now);
            effects.push(Effect::Send(Call::Renew));
        }
    }

    /// The times at which f is to be told to stop, and why.
    fn stops(&self, timing: &Timing) -> [Option<(Moment, Cause)>; 2] {
        let limit = self.started_at.zip(timing.time_limit());
        let silent = timing.breaks(TenureMutant::NeverTellsThatItIsOverdue);
        [
            (!silent).then(|| (self.base + stop_after(timing), Cause::Overdue)),
            limit.map(|(started_at, limit)| (started_at + (limit - timing.margin()), Cause::TimeLimit)),
        ]
    }

    fn renewed(&mut self, timing: &Timing, now: Moment) {
        let Some(sent_at) = self.renewing.take() else { return };
        // Once the time to drop f has come, it has come: f may be gone, and its successor may be on its way. After a
        // loss no renewal is under way.
        if now >= self.drop_at && !timing.breaks(TenureMutant::RevivesAfterTheDrop) {
            return;
        }
        let sent_at = if timing.breaks(TenureMutant::CountsFromTheReply) {
            now
        } else {
            sent_at
        };
        self.base = sent_at;
        self.renew_at = sent_at + timing.renew_every();
        self.drop_at = drop_at(timing, sent_at);
        self.apply_time_limit(timing);
    }

    fn lose(&mut self, now: Moment, evicted: bool, effects: &mut Vec<Effect>) {
        self.renewing = None;
        self.lost = true;
        self.tell(Cause::Lost, effects);
        if !evicted {
            self.drop_at = self.drop_at.min(now);
            self.drop(effects);
        }
    }

    fn tell(&mut self, cause: Cause, effects: &mut Vec<Effect>) {
        if self.stop.is_none() {
            self.stop = Some(cause);
            effects.push(Effect::Stop(cause));
        }
    }

    fn drop(&mut self, effects: &mut Vec<Effect>) {
        if !self.dropped {
            self.dropped = true;
            effects.push(Effect::Drop);
        }
    }

    /// f has no longer than its time limit, however long the lease is renewed.
    fn apply_time_limit(&mut self, timing: &Timing) {
        if let Some((started_at, limit)) = self.started_at.zip(timing.time_limit())
            && !timing.breaks(TenureMutant::ForgetsTheTimeLimit)
        {
            self.drop_at = self.drop_at.min(started_at + limit);
        }
    }
}

fn drop_at(timing: &Timing, base: Moment) -> Moment {
    let forgets = timing.breaks(TenureMutant::ForgetsTheDrift);
    let drift = if forgets { Duration::ZERO } else { timing.drift() };
    base + (timing.ttl() - drift)
}

//! f is told to stop for a reason that is true, in time, and once; and it is not polled beyond its own end.
//!
//! - `Overdue`: no renewal was answered for ttl less margin by the pod's clock, and renewals were still being tried.
//! - `Lost`: the store has said so. Then f is told at once, and is polled no more unless by an operator's eviction.
//! - `TimeLimit`: a margin before f's limit. `ShutDown`: there was one.
//! - `Overdue` and `TimeLimit` leave f the margin less the drift, and come before it is dropped.
//! - With `OnLost::Drop`, no poll begins after the time limit, nor after the grace of a shutdown.
//!
//! The parts that speak of time hold for tenures in which the pod did not stand still.

use std::collections::BTreeMap;
use std::time::Duration;

use lease_core::{Moment, OnLost, Timing};

use super::{Check, Facts, violated};
use crate::sim::seen::{Answer, Ended, HolderId, Kind, Polled, Sent, Statement, Tick, Told, What};

/// How late a stop may come: the rounding of clocks.
const SLACK: Duration = Duration::from_micros(10);

/// What is known of a tenure.
#[derive(Default)]
struct Tenure {
    acquired: Tick,
    lease: usize,
    /// When the last two statements were sent that were answered well, and when the last answer came.
    bases: [Option<Moment>; 2],
    answered_at: Option<Tick>,
    renewing: bool,
    /// When the last renewal had no answer.
    failed: Option<Moment>,
    lost: Option<bool>,
    started: Option<Moment>,
    told: Option<Told>,
}

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let mut tenures: BTreeMap<HolderId, Tenure> = BTreeMap::new();
    let mut shutdowns: BTreeMap<usize, (Tick, Moment)> = BTreeMap::new();
    let mut calls: BTreeMap<usize, HolderId> = BTreeMap::new();
    for (at, what) in facts.seen() {
        match what {
            What::Sent(sent) => {
                let tenure = tenures.entry(sent.holder).or_default();
                match sent.statement {
                    Statement::Acquire => (tenure.acquired, tenure.lease) = (at, sent.lease),
                    Statement::Renew => tenure.renewing = true,
                    Statement::Release => {}
                }
            }
            What::Answered {
                sent,
                answer,
                at: moment,
            } => {
                let tenure = tenures.entry(sent.holder).or_default();
                tenure.answered(at, sent, *answer, *moment);
            }
            What::Started {
                holder,
                call,
                at: moment,
            } => {
                tenures.entry(*holder).or_default().started = Some(*moment);
                calls.insert(*call, *holder);
            }
            What::Called {
                lease,
                kind: Kind::ShutDown(grace),
                at: moment,
                ..
            } => drop(shutdowns.insert(*lease, (at, *moment + *grace))),
            What::Polled(polled) => {
                let tenure = tenures.entry(polled.holder).or_default();
                let timing = facts.timing(polled.name);
                let stood = |from| facts.stood(tenure.lease, from, at);
                let shutdown = shutdowns.get(&tenure.lease);
                let in_time = !stood(tenure.acquired);
                let is_too_late = shutdown.is_some_and(|(from, until)| polled.at > *until + SLACK && !stood(*from));
                let judged = tenure.polled(at, timing, polled, in_time, shutdown.is_some());
                judged.or_else(|how| violated(at, format!("h{}: {how}", polled.holder)))?;
                if is_too_late && timing.on_lost() == OnLost::Drop {
                    return violated(
                        at,
                        format!("h{} is polled after the grace of a shutdown", polled.holder),
                    );
                }
            }
            What::Returned {
                call,
                how: Ended::Dropped(told @ (Told::Overdue | Told::TimeLimit)),
                ..
            } => {
                let tenure = calls.get(call).and_then(|holder| tenures.get(holder));
                if let Some(tenure) = tenure
                    && tenure.told.is_none()
                    && !facts.stood(tenure.lease, tenure.acquired, at)
                {
                    return violated(at, format!("call {call}: f was dropped for {told:?}, and never told"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl Tenure {
    fn answered(&mut self, tick: Tick, sent: &Sent, answer: Answer, at: Moment) {
        match answer {
            Answer::Granted(_) | Answer::Renewed => {
                self.bases = [Some(sent.at), self.bases[0]];
                self.answered_at = Some(tick);
            }
            Answer::Lost { evicted } => self.lost = Some(evicted),
            Answer::Unknown | Answer::Never if sent.statement == Statement::Renew => self.failed = Some(at),
            _ => {}
        }
        if sent.statement == Statement::Renew {
            self.renewing = false;
        }
    }

    fn polled(
        &mut self,
        tick: Tick,
        timing: &Timing,
        polled: &Polled,
        in_time: bool,
        shut: bool,
    ) -> Result<(), String> {
        if self.told.is_some() && self.told != polled.stop {
            return Err(format!("told {:?}, and then {:?}", self.told, polled.stop));
        }
        if self.lost.is_some() && polled.stop.is_none() {
            return Err("the store said that it is lost, and f is not told".to_owned());
        }
        if timing.on_lost() == OnLost::Drop {
            if self.lost == Some(false) {
                return Err("the store said that it is lost, and f is polled".to_owned());
            }
            let ends_at = self
                .started
                .zip(timing.time_limit())
                .map(|(started, limit)| started + limit);
            if ends_at.is_some_and(|ends_at| polled.at > ends_at + SLACK) {
                return Err("f is polled after its time limit".to_owned());
            }
        }
        if let (None, Some(told)) = (self.told, polled.stop) {
            self.told = Some(told);
            self.is_true(tick, timing, polled, told, in_time, shut)?;
        }
        Ok(())
    }

    /// Whether what f is told for the first time is so, and leaves it time.
    fn is_true(
        &self,
        tick: Tick,
        timing: &Timing,
        polled: &Polled,
        told: Told,
        in_time: bool,
        shut: bool,
    ) -> Result<(), String> {
        let left = timing.margin() - timing.drift();
        match told {
            Told::Lost if self.lost.is_none() => Err("told that it is lost, and the store did not say so".to_owned()),
            Told::ShutDown if !shut => Err("told of a shutdown, and there is none".to_owned()),
            Told::Other => Err("told that the keeper died".to_owned()),
            Told::Overdue | Told::TimeLimit if in_time && polled.left + SLACK < left => {
                Err(format!("told {told:?} with {:?} left of {left:?}", polled.left))
            }
            Told::Overdue if in_time => self.is_overdue(tick, timing, polled.at),
            Told::TimeLimit => {
                let tells_at = self.started.zip(timing.time_limit());
                let tells_at = tells_at.map(|(started, limit)| started + (limit - timing.margin()));
                let is_early = tells_at.is_none_or(|tells_at| polled.at + SLACK < tells_at);
                if is_early {
                    Err("told of its time limit too early".to_owned())
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    fn is_overdue(&self, tick: Tick, timing: &Timing, at: Moment) -> Result<(), String> {
        // An answer in the same instant comes after the stop.
        let base = self.bases[usize::from(self.answered_at == Some(tick))];
        let silent = base.map(|base| at.since(base));
        if silent.is_none_or(|silent| silent + SLACK < timing.ttl() - timing.margin()) {
            return Err(format!("told that it is overdue after {silent:?}"));
        }
        let retry = timing.retry_every() * 5 / 4 + SLACK;
        let is_tried = self.renewing || self.failed.is_some_and(|failed| at.since(failed) <= retry);
        if is_tried || self.answered_at == Some(tick) {
            return Ok(());
        }
        Err("told that it is overdue, and no renewal is tried".to_owned())
    }
}

//! Every public call returns within its bound by the pod's clock, unless the pod stood still or is gone.
//!
//! `try_acquire`: five seconds. `acquire`: its wait and one try. `run`: a try until f starts, and a release after f has
//! gone. `release`: five seconds, or a quarter more where the store's driver does not keep its limit. `shutdown`: its
//! grace, half a second for f to be dropped, and a release; a try that was under way when it began is first answered.

use std::collections::BTreeMap;
use std::time::Duration;

use lease_core::{Moment, RELEASE_LIMIT};

use super::{Check, Facts, violated};
use crate::sim::seen::{Ended, Kind, Tick, What};

const TRY: Duration = Duration::from_secs(5);
const DROP_GRACE: Duration = Duration::from_millis(500);
const SLACK: Duration = Duration::from_millis(10);

struct Call {
    began: Tick,
    lease: usize,
    kind: Kind,
    at: Moment,
    started: bool,
    gone: Option<Moment>,
}

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let mut calls: BTreeMap<usize, Call> = BTreeMap::new();
    let mut end = None;
    for (tick, what) in facts.seen() {
        match what {
            What::Called { call, lease, kind, at } => {
                let (began, started, gone) = (tick, false, None);
                let (lease, kind, at) = (*lease, *kind, *at);
                let called = Call {
                    began,
                    lease,
                    kind,
                    at,
                    started,
                    gone,
                };
                calls.insert(*call, called);
            }
            What::Started { call, at, .. } => {
                if let Some(called) = calls.get_mut(call) {
                    within(facts, tick, *call, called, called.at, *at, TRY)?;
                    called.started = true;
                }
            }
            What::Gone { call, at, .. } => {
                if let Some(called) = calls.get_mut(call) {
                    called.gone = Some(*at);
                }
            }
            What::Abandoned { call } => drop(calls.remove(call)),
            What::Returned { call, how, at } => {
                if let Some(called) = calls.remove(call) {
                    let bound = bound(&called, *how);
                    within(
                        facts,
                        tick,
                        *call,
                        &called,
                        called.gone.unwrap_or(called.at),
                        *at,
                        bound,
                    )?;
                }
            }
            What::Over => end = Some(tick),
            _ => {}
        }
    }
    let open = calls
        .iter()
        .find(|(_, called)| end.is_some_and(|end| !facts.stood(called.lease, called.began, end)));
    match open {
        Some((call, called)) => violated(
            end.unwrap_or(0),
            format!("call {call}, {:?}, never returned", called.kind),
        ),
        None => Ok(()),
    }
}

/// How long a call may take, from f's end if there was one.
fn bound(called: &Call, how: Ended) -> Duration {
    let release = RELEASE_LIMIT * 5 / 4;
    match called.kind {
        Kind::Run if called.started => release,
        // Granted, and over before f could start: it is released first.
        Kind::Run if matches!(how, Ended::Dropped(_)) => TRY + release,
        Kind::Run | Kind::TryAcquire => TRY,
        Kind::Acquire(wait) | Kind::Probe(wait) => wait + TRY,
        Kind::GuardRun | Kind::Release => release,
        Kind::ShutDown(grace) => (grace + DROP_GRACE).max(TRY / 2) + release,
    }
}

fn within(
    facts: &Facts<'_>,
    tick: Tick,
    call: usize,
    called: &Call,
    from: Moment,
    to: Moment,
    bound: Duration,
) -> Check {
    let took = to.since(from);
    if took <= bound + SLACK || facts.stood(called.lease, called.began, tick) {
        return Ok(());
    }
    violated(
        tick,
        format!("call {call}, {:?}, took {took:?} of {bound:?}", called.kind),
    )
}

//! No row is left to expire while nobody tries to release it.
//!
//! When a row expires that was not released, somebody must have been busy with it in the last interval between two
//! tries: its f or guard was still there (and could not renew), or a release was under way (and met a fault). Excused
//! are a pod that stood still then or is gone; an undo that has given up after two ttl; a tenure that a shutdown gave up
//! because its f went on, be it that the shutdown itself has not returned; and a row that the late duplicate of a statement
//! made, of which no pod knows.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, Facts, violated};
use crate::sim::seen::{Answer, Ended, HolderId, Kind, MOST_NAMES, RowSeen, Statement, Tick, What, Who};

/// How long after a shutdown's grace a tenure that goes on is given up, in microseconds, by a clock that may be fast.
const GIVEN_UP_AFTER: Tick = 500_000 * 94 / 100;

/// What a tenure's pod did.
#[derive(Default)]
struct Tenure {
    /// When its guard or f was there.
    held: Vec<(Tick, Tick)>,
    /// When its releases were under way.
    releases: BTreeMap<usize, (Tick, Tick)>,
    forsaken: bool,
}

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let tenures = tenures(facts);
    let mut by_duplicate = [false; MOST_NAMES];
    for (at, what) in facts.seen() {
        match what {
            What::Executed(executed) => {
                let name = executed.sent.name;
                let (before, after) = (executed.before[name], executed.after[name]);
                let is_new = after.map(|row| row.token) != before.map(|row| row.token);
                if matches!(executed.answer, Answer::Granted(_)) && is_new {
                    expired(facts, &tenures, name, before, by_duplicate[name], at)?;
                    by_duplicate[name] = executed.copy > 0;
                }
            }
            What::Operator { before, after, .. } => {
                for name in 0..MOST_NAMES {
                    if before[name].map(|row| row.token) != after[name].map(|row| row.token) {
                        let old = before[name].filter(|row| facts.expiry(row) < at);
                        expired(facts, &tenures, name, old, by_duplicate[name], at)?;
                    }
                }
            }
            What::Settled { rows, .. } => {
                for (name, row) in rows.iter().enumerate() {
                    expired(facts, &tenures, name, *row, by_duplicate[name], at)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl Facts<'_> {
    /// When a row expires, by true time, if the store's clock is not off.
    fn expiry(&self, row: &RowSeen) -> Tick {
        Tick::try_from(row.expires_at - self.history.epoch).unwrap_or(0)
    }
}

/// Judges a row that has expired and is replaced, or found at the end.
fn expired(
    facts: &Facts<'_>,
    tenures: &BTreeMap<HolderId, Tenure>,
    name: usize,
    row: Option<RowSeen>,
    by_duplicate: bool,
    at: Tick,
) -> Check {
    let Some(row) = row.filter(|row| row.released_at.is_none() && !by_duplicate) else {
        return Ok(());
    };
    let Who::Holder(holder) = row.who else { return Ok(()) };
    let (Some(tenure), Some(acquire)) = (tenures.get(&holder), facts.acquires.get(&holder)) else {
        return violated(at, format!("nobody knows h{holder}"));
    };
    let timing = facts.timing(name);
    let us = |duration: std::time::Duration| Tick::try_from(duration.as_micros()).unwrap_or(Tick::MAX);
    // Between two tries, by a clock that may be slow.
    let interval = us(timing.undo_every()) * 106 / 100 + 1_000;
    let to = facts.expiry(&row);
    let from = to.saturating_sub(facts.history.largest_step + interval);
    let overlaps = |(begin, end): &(Tick, Tick)| *begin <= to && *end >= from;
    let is_busy = tenure.held.iter().any(overlaps) || tenure.releases.values().any(overlaps);
    let first = tenure.releases.values().map(|(sent, _)| *sent).min();
    let has_given_up = first.is_some_and(|first| to > first + us(timing.ttl()) * 2 * 94 / 100 - interval);
    if is_busy || has_given_up || tenure.forsaken || facts.stood(acquire.lease, from, to) {
        return Ok(());
    }
    violated(
        at,
        format!("{row:?} expired at {to}, and nobody was trying to release it"),
    )
}

fn tenures(facts: &Facts<'_>) -> BTreeMap<HolderId, Tenure> {
    let mut tenures: BTreeMap<HolderId, Tenure> = BTreeMap::new();
    let mut shutdowns = BTreeMap::new();
    let mut running: BTreeSet<HolderId> = BTreeSet::new();
    // When which of those that run are given up at the earliest.
    let mut graces: Vec<(Tick, usize, BTreeSet<HolderId>)> = Vec::new();
    for (at, what) in facts.seen() {
        match what {
            What::Sent(sent) => {
                let tenure = tenures.entry(sent.holder).or_default();
                if sent.statement == Statement::Release {
                    tenure.releases.insert(sent.id, (at, Tick::MAX));
                }
            }
            What::Answered { sent, .. } => {
                let release = tenures
                    .get_mut(&sent.holder)
                    .and_then(|tenure| tenure.releases.get_mut(&sent.id));
                if let Some(release) = release {
                    release.1 = at;
                }
            }
            What::Taken { holder } | What::Started { holder, .. } => {
                tenures.entry(*holder).or_default().held.push((at, Tick::MAX));
                running.insert(*holder);
            }
            What::Handed { holder } | What::LetGo { holder } | What::Gone { holder, .. } => {
                if let Some(last) = tenures.entry(*holder).or_default().held.last_mut() {
                    last.1 = at;
                }
                running.remove(holder);
                let is_given_up = |(until, lease, were_running): &(Tick, usize, BTreeSet<HolderId>)| {
                    at >= *until && were_running.contains(holder) && is_of(facts, *holder, *lease)
                };
                if graces.iter().any(is_given_up) {
                    tenures.entry(*holder).or_default().forsaken = true;
                }
            }
            What::Called {
                call,
                lease,
                kind: Kind::ShutDown(grace),
                ..
            } => {
                let grace = Tick::try_from(grace.as_micros()).unwrap_or(Tick::MAX / 2) * 94 / 100;
                graces.push((at + grace + GIVEN_UP_AFTER, *lease, running.clone()));
                shutdowns.insert(*call, (*lease, running.clone()));
            }
            What::Returned {
                call,
                how: Ended::ShutDown { forsaken },
                ..
            } if *forsaken > 0 => {
                let (lease, were_running) = shutdowns.remove(call).unwrap_or_default();
                for holder in were_running {
                    let is_ours = is_of(facts, holder, lease);
                    if let Some(tenure) = tenures.get_mut(&holder).filter(|_| is_ours) {
                        tenure.forsaken = true;
                    }
                }
            }
            _ => {}
        }
    }
    tenures
}

fn is_of(facts: &Facts<'_>, holder: HolderId, lease: usize) -> bool {
    facts
        .acquires
        .get(&holder)
        .is_some_and(|acquire| acquire.lease == lease)
}

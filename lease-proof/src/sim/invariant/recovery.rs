//! When faults have ended and everything has come to rest, every row is free, but for a minimum that was asked for, and
//! each pod can take each lease again.

use std::collections::BTreeSet;

use super::{Check, Facts, violated};
use crate::sim::seen::{Ended, Kind, What};

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let mut probes = BTreeSet::new();
    for (at, what) in facts.seen() {
        match what {
            What::Settled { rows, now } => {
                let taken = rows
                    .iter()
                    .flatten()
                    .find(|row| row.is_live(*now) && row.released_at.is_none());
                if let Some(row) = taken {
                    return violated(at, format!("at rest, and {row:?} at {now}"));
                }
            }
            What::Called {
                call,
                kind: Kind::Probe(_),
                ..
            } => drop(probes.insert(*call)),
            What::Returned { call, how, .. } if probes.remove(call) && *how != Ended::Granted => {
                return violated(at, format!("call {call} can't take a lease that nobody uses: {how:?}"));
            }
            _ => {}
        }
    }
    Ok(())
}

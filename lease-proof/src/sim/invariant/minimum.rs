//! A tenure in which f ran, or whose guard the user had, keeps its `at_least_for`. One that was abandoned, or never
//! started, keeps nothing, and neither does an undo.

use std::collections::BTreeSet;

use lease_core::microseconds;

use super::{Check, Facts, violated};
use crate::sim::seen::{Statement, What};

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let mut used = BTreeSet::new();
    for (at, what) in facts.seen() {
        match what {
            What::Taken { holder } | What::Started { holder, .. } => drop(used.insert(*holder)),
            What::Handed { holder } => drop(used.remove(holder)),
            What::Sent(sent) if sent.statement == Statement::Release => {
                let minimum = microseconds(facts.timing(sent.name).at_least_for());
                let expected = if used.contains(&sent.holder) { minimum } else { 0 };
                if sent.at_least_for != expected {
                    let how = format!("h{} is released for {}, not {expected}", sent.holder, sent.at_least_for);
                    return violated(at, how);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

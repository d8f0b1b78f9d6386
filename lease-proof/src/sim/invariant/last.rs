//! The release of a tenure is sent only when its f is gone and its guard is given up; no poll of f begins later.

use std::collections::BTreeSet;

use super::{Check, Facts, violated};
use crate::sim::seen::{Statement, What};

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let (mut held, mut released) = (BTreeSet::new(), BTreeSet::new());
    for (at, what) in facts.seen() {
        match what {
            What::Taken { holder } | What::Started { holder, .. } => drop(held.insert(*holder)),
            // From here f decides: see `Started`.
            What::Handed { holder } | What::LetGo { holder } | What::Gone { holder, .. } => {
                held.remove(holder);
            }
            What::Sent(sent) if sent.statement == Statement::Release => {
                if held.contains(&sent.holder) {
                    return violated(at, format!("h{} is released, and not gone", sent.holder));
                }
                released.insert(sent.holder);
            }
            What::Polled(polled) if released.contains(&polled.holder) => {
                return violated(at, format!("h{} is polled after its release was sent", polled.holder));
            }
            _ => {}
        }
    }
    Ok(())
}

//! f starts only under a lease that is fresh: the last answer had come less than `renew_every` after its statement was
//! sent. A grant that came later is renewed first.

use std::collections::BTreeMap;

use super::{Check, Facts, violated};
use crate::sim::seen::{Answer, What};

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let mut took = BTreeMap::new();
    for (at, what) in facts.seen() {
        match what {
            What::Answered {
                sent,
                answer: Answer::Granted(_) | Answer::Renewed,
                at,
            } => drop(took.insert(sent.holder, at.since(sent.at))),
            What::Started { holder, .. } => {
                let Some(timing) = facts.timing_of(*holder) else {
                    return violated(at, format!("h{holder} starts without an acquire"));
                };
                match took.get(holder) {
                    None => return violated(at, format!("h{holder} starts without a grant")),
                    Some(took) if *took >= timing.renew_every() => {
                        return violated(at, format!("h{holder} starts under an answer that took {took:?}"));
                    }
                    Some(_) => {}
                }
            }
            _ => {}
        }
    }
    Ok(())
}

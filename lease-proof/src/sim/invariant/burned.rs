//! Once a release was sent by a holder, nothing but releases is: it is burned. And it acquires once only.

use std::collections::BTreeSet;

use super::{Check, Facts, violated};
use crate::sim::seen::{Statement, What};

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let (mut burned, mut acquired) = (BTreeSet::new(), BTreeSet::new());
    for (at, what) in facts.seen() {
        let What::Sent(sent) = what else { continue };
        let holder = sent.holder;
        match sent.statement {
            Statement::Release => drop(burned.insert(holder)),
            statement if burned.contains(&holder) => {
                return violated(at, format!("h{holder} is burned, and sends {statement:?}"));
            }
            Statement::Acquire if !acquired.insert(holder) => {
                return violated(at, format!("h{holder} acquires again"));
            }
            _ => {}
        }
    }
    Ok(())
}

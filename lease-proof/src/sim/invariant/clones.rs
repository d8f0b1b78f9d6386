//! A clone of `Held`, also one that outlived its tenure, says that the lease is ours only while it is: while the row is
//! live and this holder's, or an operator's who left it live. And once it has said no, it never says yes again.
//!
//! Clones are asked whenever a lease is granted to anyone, and at other times. It holds for `OnLost::SignalOnly` too:
//! that f goes on, but it can know that the lease is over.

use std::collections::BTreeSet;

use super::{Check, Facts, violated};
use crate::sim::seen::{What, Who};

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let mut over = BTreeSet::new();
    for (at, what) in facts.seen() {
        let What::Claimed(claimed) = what else { continue };
        let holder = claimed.holder;
        if !claimed.live {
            over.insert(holder);
            continue;
        }
        if over.contains(&holder) {
            return violated(at, format!("a clone of h{holder} said no, and now says yes"));
        }
        let is_so = claimed.row.is_some_and(|row| {
            let own = row.is_of(holder) && row.token == claimed.token && row.released_at.is_none();
            row.is_live(claimed.now) && (own || row.who == Who::Operator)
        });
        if !is_so {
            let how = format!(
                "a clone of h{holder} says yes at {}, and the row is {:?}",
                claimed.now, claimed.row
            );
            return violated(at, how);
        }
    }
    Ok(())
}

//! When a poll of f begins, the store's row is still live by the store's own clock, and f's own: or an operator's, who
//! took it and left it live.
//!
//! Not so with `OnLost::SignalOnly`, which says that f goes on.

use lease_core::OnLost;

use super::{Check, Facts, violated};
use crate::sim::seen::{What, Who};

pub(super) fn check(facts: &Facts<'_>) -> Check {
    for (at, what) in facts.seen() {
        let What::Polled(polled) = what else { continue };
        if facts.timing(polled.name).on_lost() != OnLost::Drop {
            continue;
        }
        let is_fine = polled.row.is_some_and(|row| {
            let own = row.is_of(polled.holder) && row.token == polled.token && row.released_at.is_none();
            row.is_live(polled.now) && (own || row.who == Who::Operator)
        });
        if !is_fine {
            let how = format!(
                "h{} is polled at {}, and the row is {:?}",
                polled.holder, polled.now, polled.row
            );
            return violated(at, how);
        }
    }
    Ok(())
}

//! No poll of f begins under a token once a poll began under a greater token of that name.
//!
//! This is exclusion itself, seen by the tenures alone. A tenure with `OnLost::SignalOnly` was told to go on beside its
//! successor, and is excepted.

use lease_core::OnLost;

use super::{Check, Facts, violated};
use crate::sim::seen::{MOST_NAMES, What};

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let mut greatest = [0; MOST_NAMES];
    for (at, what) in facts.seen() {
        let What::Polled(polled) = what else { continue };
        let greatest = &mut greatest[polled.name];
        if polled.token < *greatest && facts.timing(polled.name).on_lost() == OnLost::Drop {
            let how = format!(
                "h{} is polled under token {} after {greatest}",
                polled.holder, polled.token
            );
            return violated(at, how);
        }
        *greatest = polled.token.max(*greatest);
    }
    Ok(())
}

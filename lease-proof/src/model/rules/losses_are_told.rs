//! A loss ends the lease: at once, or after an eviction at the time it had.

use lease_core::tenure::Event;

use crate::model::observe::Observed;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "when the store says that the lease is lost, f is told, and dropped unless it was evicted";

pub(super) fn is_broken_by(_: &World, observed: &Observed<'_>) -> bool {
    let Observed::Told(told) = observed else { return false };
    let Event::Lost { evicted } = told.event else {
        return false;
    };
    let held = told.before.is_running() && told.after.is_running();
    held && (told.after.stop.is_none() || !(evicted || told.after.dropped))
}

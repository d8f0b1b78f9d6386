//! An error is no answer: the renewal is sent again while there is time.

use lease_core::tenure::{Cause, Event};

use crate::model::observe::Observed;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "a renewal without an answer is soon sent again, as long as the lease is not over";

pub(super) fn is_broken_by(world: &World, observed: &Observed<'_>) -> bool {
    let Observed::Told(told) = observed else { return false };
    let failed = matches!(told.event, Event::RenewFailed(_)) && told.before.is_running();
    let over = told.before.dropped || told.before.stop == Some(Cause::Lost) || told.now >= told.before.tenure.drop_at();
    let soon = told.now + world.timing.retry_every() * 5 / 4;
    failed && !over && told.after.tenure.next_at().is_none_or(|next_at| next_at > soon)
}

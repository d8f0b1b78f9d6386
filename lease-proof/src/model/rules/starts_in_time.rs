//! f starts only under a fresh grant.

use lease_core::tenure::Effect;

use crate::model::observe::Observed;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "a lease is handed out only before its next renewal is due";

pub(super) fn is_broken_by(world: &World, observed: &Observed<'_>) -> bool {
    let Observed::Told(told) = observed else { return false };
    let grants = told.effects.iter().any(|effect| matches!(effect, Effect::Grant(_)));
    let in_time = told
        .sent_at
        .is_some_and(|sent_at| told.now < sent_at + world.timing.renew_every());
    grants && !in_time
}

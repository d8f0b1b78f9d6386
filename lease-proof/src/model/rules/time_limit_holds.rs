//! f has no longer than its time limit, however well the lease is renewed.

use crate::model::observe::Observed;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "no poll of f begins once its time limit is over";

pub(super) fn is_broken_by(world: &World, observed: &Observed<'_>) -> bool {
    let Observed::Poll(poll) = observed else { return false };
    let limit = world.timing.time_limit().zip(poll.entry.started_at);
    limit.is_some_and(|(limit, started_at)| poll.now >= started_at + limit)
}

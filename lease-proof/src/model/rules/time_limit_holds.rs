//! f has no longer than its time limit, however well the lease is renewed.

use crate::model::state::State;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "no poll of f begins once its time limit is over";

pub(super) fn holds(world: &World, state: &State) -> bool {
    let Some(limit) = world.timing.time_limit() else {
        return true;
    };
    world.polls(state).all(|(pod, entry)| {
        let end = entry.started_at.map(|started_at| started_at + limit);
        end.is_some_and(|end| world.now(state, pod) < end)
    })
}

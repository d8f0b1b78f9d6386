//! Exclusion, as the row sees it: the pod's clock and the database's agree on what matters.

use crate::model::sightings::Sight;
use crate::model::state::State;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "while a poll of f begins, the row is live for its holder and token, or for an operator";

pub(super) fn holds(world: &World, state: &State) -> bool {
    world.polls(state).all(|(pod, entry)| {
        let Some(row) = state.row().filter(|row| row.expires_at > world.store_now(state)) else {
            return false;
        };
        let holder = &world.claim(pod, entry.serial).holder;
        let same = row.holder == holder.as_str() && Some(row.token) == entry.token.map(|token| token.get());
        let ours = same && row.released_at.is_none();
        // An eviction and a pause leave the row live to the time the holder had.
        let displaced = row.holder.starts_with("evict/") || row.holder.starts_with("pause/");
        world.sightings.count(Sight::PolledWhileEvicted, displaced);
        ours || displaced
    })
}

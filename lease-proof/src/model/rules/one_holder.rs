//! Exclusion, as what f writes to would see it.
//!
//! Tokens grow with each grant, so this says more than that once a poll began under a token, none begins under a
//! smaller one or under another holder's.

use crate::model::state::State;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "a poll of f begins only under the last grant, and no two holders' polls interleave";

pub(super) fn holds(world: &World, state: &State) -> bool {
    world.polls(state).all(|(pod, entry)| {
        state.granted.is_some_and(|last| {
            Some(last.token) == entry.token && usize::from(last.pod) == pod && last.serial == entry.serial
        })
    })
}

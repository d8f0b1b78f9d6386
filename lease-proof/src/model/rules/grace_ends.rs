//! A shutdown ends f.

use crate::model::state::{Shutdown, State};
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "no poll of f begins after the grace of a shutdown";

pub(super) fn holds(world: &World, state: &State) -> bool {
    let mut polls = world.polls(state);
    polls.all(|(pod, _)| state.pods[pod].shutdown < Shutdown::GraceOver)
}

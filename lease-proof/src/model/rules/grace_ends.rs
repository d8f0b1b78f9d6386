//! A shutdown ends f.

use crate::model::observe::Observed;
use crate::model::state::Shutdown;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "no poll of f begins after the grace of a shutdown";

pub(super) fn is_broken_by(_: &World, observed: &Observed<'_>) -> bool {
    let Observed::Poll(poll) = observed else { return false };
    poll.shutdown >= Shutdown::GraceOver
}

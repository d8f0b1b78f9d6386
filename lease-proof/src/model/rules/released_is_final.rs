//! Law L4: a released row that waits out its minimum is nobody's.

use crate::model::observe::Observed;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "a released row that is still live stays as it is";

pub(super) fn is_broken_by(_: &World, observed: &Observed<'_>) -> bool {
    let Observed::Executed(executed) = observed else {
        return false;
    };
    let released = executed.live_before().filter(|row| row.released_at.is_some());
    released.is_some() && executed.after != released
}

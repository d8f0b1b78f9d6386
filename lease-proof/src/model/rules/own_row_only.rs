//! Law L5: a statement of one holder leaves the others' row as it is.

use crate::model::observe::Observed;
use crate::model::wire::Statement;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "no statement changes another holder's row, but an acquire that finds it expired";

pub(super) fn is_broken_by(_: &World, observed: &Observed<'_>) -> bool {
    let Observed::Executed(executed) = observed else {
        return false;
    };
    let Some(before) = executed.before.filter(|row| row.holder != executed.holder) else {
        return false;
    };
    let takes = executed.statement == Statement::Acquire && executed.live_before().is_none();
    !takes && executed.after != Some(before)
}

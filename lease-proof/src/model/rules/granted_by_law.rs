//! Law L1: who is granted.

use crate::model::observe::Observed;
use crate::model::wire::Statement;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "an acquire is granted if and only if the row is free, or its own and not released";

pub(super) fn is_broken_by(_: &World, observed: &Observed<'_>) -> bool {
    let Observed::Executed(executed) = observed else {
        return false;
    };
    if executed.statement != Statement::Acquire {
        return false;
    }
    let retries = |row: &lease_core::Row| row.holder == executed.holder && row.released_at.is_none();
    executed.granted() != executed.live_before().is_none_or(retries)
}

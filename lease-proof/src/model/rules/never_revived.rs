//! `drop_at` is final.

use crate::model::observe::Observed;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "once drop_at has passed, nothing moves it";

pub(super) fn is_broken_by(_: &World, observed: &Observed<'_>) -> bool {
    let Observed::Told(told) = observed else { return false };
    let (before, after) = (told.before.tenure.drop_at(), told.after.tenure.drop_at());
    told.before.is_running() && told.now >= before && after > before
}

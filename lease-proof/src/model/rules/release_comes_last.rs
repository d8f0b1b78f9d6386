//! The row is given up strictly after f is gone.

use lease_core::tenure::{Call, Effect};

use crate::model::observe::Observed;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "a release is sent only when f is gone";

pub(super) fn is_broken_by(_: &World, observed: &Observed<'_>) -> bool {
    let Observed::Told(told) = observed else { return false };
    let releases = |effect: &Effect| matches!(effect, Effect::Send(Call::Release { .. }));
    told.before.has_f() && told.effects.iter().any(releases)
}

//! `at_least_for` counts for a job that ran, and for no other.

use std::time::Duration;

use lease_core::tenure::{Call, Effect};

use crate::model::observe::Observed;
use crate::model::state::F;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "a release keeps the minimum if f ran, and none if it did not";

pub(super) fn is_broken_by(world: &World, observed: &Observed<'_>) -> bool {
    let Observed::Told(told) = observed else { return false };
    let ran = matches!(told.after.f, F::Gone { ran: true } | F::Runs);
    let right = if ran { world.timing.at_least_for() } else { Duration::ZERO };
    let wrong = |effect: &Effect| matches!(effect, Effect::Send(Call::Release { at_least_for }) if *at_least_for != right);
    told.effects.iter().any(wrong)
}

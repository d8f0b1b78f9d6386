//! `at_least_for` counts for a job that ran, and for no other; and then the row keeps it, law L4.

use std::time::Duration;

use lease_core::microseconds;
use lease_core::tenure::{Call, Effect};

use crate::model::observe::{Executed, Observed, Told};
use crate::model::state::F;
use crate::model::wire::{Answer, Statement};
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "a release keeps the minimum if f ran, and none if it did not, and the row is free from then on";

pub(super) fn is_broken_by(world: &World, observed: &Observed<'_>) -> bool {
    match observed {
        Observed::Told(told) => asks_for_another(world, told),
        Observed::Executed(executed) => is_free_at_another_time(executed),
        Observed::Asked(_) => false,
    }
}

fn asks_for_another(world: &World, told: &Told<'_>) -> bool {
    let ran = matches!(told.after.f, F::Gone { ran: true } | F::Runs);
    let right = if ran { world.timing.at_least_for() } else { Duration::ZERO };
    told.effects.iter().any(|effect| match effect {
        Effect::Send(Call::Release { at_least_for }) => *at_least_for != right,
        _ => false,
    })
}

fn is_free_at_another_time(executed: &Executed<'_>) -> bool {
    let (Statement::Release(least), Answer::Released) = (executed.statement, executed.answer) else {
        return false;
    };
    let free_at = executed.before.map(|row| {
        let least = row.acquired_at + microseconds(least);
        let was_live = row.expires_at > executed.now;
        if was_live { least.max(executed.now) } else { row.expires_at }
    });
    executed.after.map(|row| row.expires_at) != free_at
}

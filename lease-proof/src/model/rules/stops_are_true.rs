//! What f is told: in time, once, and the truth.

use lease_core::tenure::{Cause, Effect, Event};

use crate::model::observe::{Observed, Told};
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "f is told to stop once, for a reason that is true, and before it is dropped";

pub(super) fn is_broken_by(world: &World, observed: &Observed<'_>) -> bool {
    let Observed::Told(told) = observed else { return false };
    let mut stopped = told.before.stop.is_some();
    let mut dropped = told.before.dropped;
    for effect in told.effects {
        match effect {
            Effect::Stop(cause) => {
                if stopped || !is_true(world, told, *cause) {
                    return true;
                }
                stopped = true;
            }
            Effect::Drop => {
                if dropped || !stopped {
                    return true;
                }
                dropped = true;
            }
            _ => {}
        }
    }
    false
}

fn is_true(world: &World, told: &Told<'_>, cause: Cause) -> bool {
    let timing = &world.timing;
    match cause {
        Cause::Lost => matches!(told.event, Event::Lost { .. }),
        Cause::Overdue => told.now >= told.before.base + (timing.ttl() - timing.margin()),
        Cause::TimeLimit => timing
            .time_limit()
            .zip(told.before.started_at)
            .is_some_and(|(limit, started_at)| told.now >= started_at + (limit - timing.margin())),
        Cause::ShutDown => matches!(told.event, Event::ShutDown | Event::GraceOver),
    }
}

//! Law L2, and half of L3: nothing but a new grant brings an expired row back to life.

use crate::model::observe::Observed;
use crate::model::wire::{Answer, Statement};
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "tokens grow with each new grant, and with nothing else";

pub(super) fn is_broken_by(_: &World, observed: &Observed<'_>) -> bool {
    let Observed::Executed(executed) = observed else {
        return false;
    };
    let (old, new) = (executed.before.map(|row| row.token), executed.after.map(|row| row.token));
    let was_live = executed.live_before().is_some();
    match (executed.statement, executed.answer) {
        (Statement::Acquire, Answer::Granted(token)) if !was_live => new != Some(token.get()) || new <= old,
        (_, Answer::Granted(token)) => new != Some(token.get()) || new != old,
        _ => new != old || (!was_live && executed.after.is_some_and(|row| row.expires_at > executed.now)),
    }
}

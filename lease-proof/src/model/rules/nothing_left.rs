//! A tenure cleans up after itself: undo and release.

use crate::model::bounds::UNIT;
use crate::model::state::State;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "a tenure that is over, with nothing of it in flight, leaves no live row that is not released";

pub(super) fn holds(world: &World, state: &State) -> bool {
    let Some(row) = state.row() else { return true };
    // A clock that stepped back makes a row live again that was found expired: that is within `drift`, and no tenure's.
    let now = world.store_now(state) - i64::from(state.ahead.min(0)) * lease_core::microseconds(UNIT);
    if row.expires_at <= now || row.released_at.is_some() {
        return true;
    }
    let theirs = state.pods.iter().enumerate().find_map(|(pod, this)| {
        let mut serials = (0..this.asked).rev();
        let serial = serials.find(|serial| world.claim(pod, *serial).holder.as_str() == row.holder)?;
        Some((pod, this, serial))
    });
    let Some((pod, this, serial)) = theirs else {
        // An operator's.
        return true;
    };
    let excused = this.excused & (1 << serial) != 0;
    let lives = this.entries.iter().any(|entry| entry.serial == serial);
    let in_flight = state
        .wire
        .messages()
        .iter()
        .any(|message| usize::from(message.pod) == pod && message.serial == serial);
    excused || lives || in_flight
}

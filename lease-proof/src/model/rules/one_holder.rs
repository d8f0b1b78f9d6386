//! Exclusion, as what f writes to would see it.

use crate::model::observe::Observed;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "once a poll began under a token, none begins under a smaller one, nor under another holder's";

pub(super) fn is_broken_by(_: &World, observed: &Observed<'_>) -> bool {
    let Observed::Poll(poll) = observed else { return false };
    poll.last
        .is_some_and(|last| poll.this != last && poll.this.token <= last.token)
}

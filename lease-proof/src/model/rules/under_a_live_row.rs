//! Exclusion, as the row sees it: the pod's clock and the database's agree on what matters.

use crate::model::observe::Observed;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "while a poll of f begins, the row is live for its holder and token, or for an operator";

pub(super) fn is_broken_by(_: &World, observed: &Observed<'_>) -> bool {
    let Observed::Poll(poll) = observed else { return false };
    let Some(row) = poll.row.filter(|row| row.expires_at > poll.store_now) else {
        return true;
    };
    let ours = row.holder == poll.holder && row.token == poll.this.token.get() && row.released_at.is_none();
    // An eviction and a pause leave the row live to the time the holder had.
    let displaced = row.holder.starts_with("evict/") || row.holder.starts_with("pause/");
    !ours && !displaced
}

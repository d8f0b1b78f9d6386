//! A release burns its holder.

use lease_core::tenure::{Call, Effect};

use crate::model::observe::Observed;
use crate::model::world::World;

/// Its name.
pub const NAME: &str = "after its release, nothing but releases is sent for a holder";

pub(super) fn is_broken_by(_: &World, observed: &Observed<'_>) -> bool {
    match observed {
        Observed::Asked(asked) => asked.burned,
        Observed::Told(told) => {
            let mut burned = told.burned;
            told.effects.iter().any(|effect| {
                burned |= matches!(effect, Effect::Send(Call::Release { .. }));
                burned && matches!(effect, Effect::Send(Call::Renew | Call::RenewAlone))
            })
        }
        _ => false,
    }
}

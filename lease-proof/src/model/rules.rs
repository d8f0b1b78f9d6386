//! What must hold in every state: each rule has a file of its own.
//!
//! A rule about steps judges what happens in one, and the state remembers for ever that it was seen broken. A rule
//! about states judges each: those about polls ask of every state what would be if a poll of f began in it.

use stateright::Property;

use super::observe::Observed;
use super::state::State;
use super::world::World;

/// Rules that were seen broken, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Broken(u32);

impl Broken {
    const fn has(self, rule: Index) -> bool {
        self.0 & (1 << rule as u32) != 0
    }
}

macro_rules! rules {
    (steps: $($rule:ident)*; states: $($of_state:ident)*;) => {
        $(pub mod $rule;)*
        $(pub mod $of_state;)*

        #[derive(Debug, Clone, Copy)]
        #[allow(non_camel_case_types, reason = "they are named as their files are")]
        enum Index { $($rule,)* }

        pub(super) fn judge(world: &World, observed: &Observed<'_>, broken: &mut Broken) {
            $(if $rule::is_broken_by(world, observed) {
                broken.0 |= 1 << Index::$rule as u32;
            })*
        }

        pub(super) fn properties() -> Vec<Property<World>> {
            vec![
                $(Property::always($rule::NAME, |_, state: &State| !state.broken.has(Index::$rule)),)*
                $(Property::always($of_state::NAME, $of_state::holds),)*
            ]
        }
    };
}

rules! {
    steps:
    tokens_grow
    granted_by_law
    own_row_only
    released_is_final
    starts_in_time
    stops_are_true
    losses_are_told
    never_revived
    tries_again
    release_comes_last
    nothing_after_the_release
    minimum_is_kept;
    states:
    one_holder
    under_a_live_row
    time_limit_holds
    grace_ends
    nothing_left;
}

//! The real tenure machine and the real laws under a model checker.
//!
//! The [`World`] holds pods whose tenures are [`lease_core::tenure::Tenure`] and a store whose row follows
//! [`lease_core::Rows`]. What is modelled is the rest: clocks, a network, what keeper and guard do around the machine,
//! deaths and operators. The checker takes every order of steps within [`Bounds`], and the [`rules`] judge each.

mod action;
mod bounds;
mod clock;
mod mutants;
mod observe;
mod pods;
mod report;
pub mod rules;
mod runs;
mod sightings;
mod state;
mod store;
mod wire;
mod world;

pub use action::Action;
pub use bounds::{Bounds, Budget, Network, Slack, Times, UNIT};
pub use mutants::{NOTICED, Noticed, OUT_OF_REACH};
pub use report::{Counterexamples, Explored, Judged, explore, judge};
pub use runs::SMALL;
pub use sightings::{Sight, Sightings};
pub use state::State;
pub use world::{Break, World};

//! The real tenure machine and the real laws under a model checker.
//!
//! The [`World`] holds pods whose tenures are [`lease_core::tenure::Tenure`] and a store whose row follows
//! [`lease_core::Rows`]. What is modelled is the rest: clocks, a network, what keeper and guard do around the machine,
//! deaths and operators. The checker takes every order of steps within [`Bounds`], and the [`rules`] judge each.

mod action;
mod bounds;
mod clock;
mod observe;
mod pods;
pub mod rules;
mod sightings;
mod state;
mod store;
mod wire;
mod world;

pub use action::Action;
pub use bounds::{Bounds, Budget, Network, Slack, Times, UNIT};
pub use sightings::{Sight, Sightings};
pub use state::State;
pub use world::{Break, World};

//! The real tenure machine and the real laws under a model checker.
//!
//! A [`World`] holds pods whose tenures are [`lease_core::tenure::Tenure`] and a store whose row follows
//! [`lease_core::Rows`]: both are the code that runs, nothing of them is written anew. What is modelled is the rest:
//! clocks, a network, what keeper and guard do around the machine, deaths and operators. The checker takes every
//! order of steps within [`Bounds`], and the [`rules`] judge each.
//!
//! # What is assumed
//! - Time has steps of one [`UNIT`]; any number of things happen within one, in any order.
//! - A pod's clock may stand still for a unit and the database's may step by one, forwards or back, but never two of
//!   these within a ttl: together they stay within `drift`, as the docs ask. A clock that is too fast only stops its
//!   pod sooner.
//! - A statement and its answer may take any time on their way, and what nobody waits for any more may execute at any
//!   later time. In the run `repeats` it may even execute twice. Where [`Slack`] bounds how long a pod waits, that
//!   bounds what is tried, and no rule rests on it.
//! - A keeper may be late by any time: so it is when a process is paused, and so it stays when its keeper has died.
//!   The gate before a poll of f reads the clock all the same. A pause between the gate and the poll's end is what no
//!   lease can see.
//!
//! # What is left behind
//! A row may stay live with nobody to release it, until its ttl is over: after a death; after a shutdown that could
//! not drop f; when the pod was away until its undo had given up; and when a copy of an acquire executes late
//! (`repeats`). The rule [`rules::nothing_left`] excuses these and no others.
//!
//! # What is left out
//! `OnLost::SignalOnly`, `evict_now` and `purge`, after which exclusion rests on the fence; several names at once;
//! the keeper's loop and its channels, which the simulation runs as they are.

mod action;
mod bounds;
mod clock;
mod command;
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
pub use command::{Args, run};
pub use mutants::{NOTICED, Noticed, OUT_OF_REACH};
pub use report::{Counterexamples, Explored, Judged, explore, judge};
pub use runs::{DEEP, SMALL};
pub use sightings::{Sight, Sightings};
pub use state::State;
pub use world::{Break, World};

//! The proof of lease-core: one holder at a time, and a stale one is told.
//!
//! [`model`] puts the real tenure machine and the real laws under a model checker, which tries every order of events up
//! to a bound. [`sim`] puts pods with the real keeper into a world of virtual time and seeded faults, and runs tenures
//! by the million. Both are themselves judged by the mutants of lease-core: each must be noticed.

pub mod model;
pub mod sim;
mod table;

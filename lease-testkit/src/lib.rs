//! The conformance suite that every lease backend passes, and the tools that prove it.
//!
//! # Testing a backend
//! Say how to get an empty store, one more client of it, and how to move its clock. The suite does the rest: each
//! behaviour of [`Repo`](lease_core::Repo)'s laws becomes a `#[test]` of its own. A file such as
//! `tests/conformance.rs` is all of this:
//!
//! ```
//! use lease_core::MemoryRepo;
//! use lease_testkit::Harness;
//!
//! struct Memory(MemoryRepo);
//!
//! impl Harness for Memory {
//!     type Repo = MemoryRepo;
//!     async fn open() -> Self {
//!         Self(MemoryRepo::new())
//!     }
//!     async fn client(&self) -> MemoryRepo {
//!         self.0.clone()
//!     }
//!     async fn step_clock(&self, by_us: i64) {
//!         self.0.step_clock(by_us);
//!     }
//! }
//!
//! lease_testkit::conformance!(Memory; inspect);
//! # // The tests are there with `cfg(test)` only: here the same cases are run by hand.
//! # for runner in lease_testkit::runners::<Memory>() {
//! #     (runner.run)();
//! # }
//! ```
//!
//! A real server's clock can't be moved, so its harness moves the rows, the other way. In SQL for `step_clock(by_us)`,
//! as one statement without a condition, where `+ by_us` stands for the engine's own arithmetic of intervals:
//!
//! ```sql
//! UPDATE task_leases SET
//!   acquired_at = acquired_at - by_us, expires_at = expires_at - by_us, released_at = released_at - by_us,
//!   token = token + GREATEST(-by_us, 0)
//! ```
//!
//! Tests that need a server carry the reason in their mark: `conformance!(.. ; ignore = "needs PostgreSQL: cargo xtask
//! test")`. See [`conformance!`] for all forms, and [`CASES`] for what is tested.
//!
//! What depends on the driver is not in the suite, since only its backend can make it happen: error kinds, lost
//! connections, isolation levels, futures dropped at each await point, the schema. It belongs in `tests/sql.rs`.
//!
//! # How far to trust it
//! `mutants.md` shows for each rule of [`MemoryRepo`](lease_core::MemoryRepo) which cases fail when it is broken. A test
//! makes that table anew: there is no rule that no case guards, and no case that guards nothing.
//!
//! # Tools
//! - [`FaultyRepo`]: any store, with lost replies, delays and hung calls, as scripted or by a seed.
//! - [`ManualClock`], [`RunningClock`]: time that a test moves.
//! - [`Overlap`], [`SpanLog`]: notice two at once, among tasks and among processes.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

#[doc(hidden)]
pub mod cases;
mod clocks;
mod conformance;
mod faulty;
mod harness;
mod list;
mod overlap;
pub mod product;
#[cfg(feature = "servers")]
pub mod servers;
mod spans;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use clocks::{ManualClock, RunningClock};
pub use faulty::{Chances, Fault, FaultyRepo};
pub use harness::Harness;
#[doc(hidden)]
pub use harness::run_case;
pub use list::{CASES, Case, Runner, runners};
pub use overlap::{Overlap, Section, Summary, Violation};
pub use spans::{Inside, Span, SpanLog, check};

//! Run a job on exactly one pod at a time: leases with fencing tokens, over any store that implements [`Repo`].
//!
//! **Not promised:** a process that is paused between its check and its write writes when it goes on, whatever the lease
//! says. For that there is the fencing token: [`Held::token`]. Exclusion rests on a database that commits durably, has
//! one primary, and whose clock stays within [`Options::drift`] of the pods' clock rates.
//!
//! ```
//! use std::time::Duration;
//! use lease_core::{Lease, MemoryRepo, Outcome};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A service uses a backend such as `lease_postgres::PostgresRepo`; `MemoryRepo` is for tests.
//! let lease = Lease::new(MemoryRepo::new());
//! let nightly = lease.job("nightly-report", Duration::from_secs(90))?;
//! match nightly.run(async |held| format!("written under token {}", held.token())).await {
//!     Outcome::Ran(ran) => assert!(ran.value.starts_with("written")),
//!     Outcome::Dropped { stop, .. } => eprintln!("had to stop: {stop}"),
//!     Outcome::Skipped(skip) => eprintln!("not here, not now: {skip}"),
//!     other => eprintln!("{other:?}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - [`Lease`] is the front door; [`Job`] a name with options, checked once; [`Guard`] a lease that is held; [`Held`] what
//!   the work knows of it.
//! - [`Repo`] is what a backend implements, as numbered laws; [`Inspect`] what an operator uses.
//! - [`tenure`] is the state machine that decides everything, without a clock or a runtime.
//!
//! # Features
//! - `tokio` (default): the keeper and [`Lease`]. Without it there are the contract, the values, the state machine and
//!   [`MemoryRepo`], and no async runtime.
//! - `metrics`: counters, gauges and histograms through the facade crate `metrics`; see `LeaseBuilder::metrics_per_lease`.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

#[cfg(feature = "tokio")]
mod campaign;
mod clock;
#[cfg(feature = "tokio")]
mod core;
mod diagnose;
#[cfg(feature = "tokio")]
mod dyn_repo;
mod error;
#[cfg(feature = "tokio")]
mod guard;
#[cfg(feature = "tokio")]
mod held;
mod inspect;
#[cfg(feature = "tokio")]
mod job;
#[cfg(feature = "tokio")]
mod keeper;
#[cfg(feature = "tokio")]
mod lease;
mod memory;
mod mutants;
mod name;
#[cfg(feature = "tokio")]
mod names;
#[cfg(feature = "tokio")]
mod observe;
#[cfg(feature = "tokio")]
mod outcome;
#[cfg(feature = "tokio")]
mod periodic;
mod repo;
#[cfg(feature = "tokio")]
mod shift;
pub mod tenure;
mod timing;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "tokio")]
pub use campaign::{Campaign, Standing};
pub use clock::Moment;
#[cfg(feature = "tokio")]
pub use clock::{BootClock, Clock, TokioClock};
pub use diagnose::{ClockReading, Finding, Level};
pub use error::{Operation, RepoError, RepoErrorKind};
#[cfg(feature = "tokio")]
pub use guard::Guard;
#[cfg(feature = "tokio")]
pub use held::Held;
pub use inspect::{DbTime, Evict, Inspect, LeaseRow, PURGE_MARGIN, RowTimes};
#[cfg(feature = "tokio")]
pub use job::{Job, Wait};
#[cfg(feature = "tokio")]
pub use lease::{Lease, LeaseBuilder};
#[cfg(feature = "mutants")]
pub use memory::Mutant;
pub use memory::{MemoryRepo, Row, Rows};
pub use name::{
    Holder, InvalidName, Label, LeaseName, MAX_LABEL_BYTES, MAX_NAME_BYTES, MAX_NOTE_BYTES, Note, SUFFIX_BYTES, Token,
};
#[cfg(feature = "tokio")]
pub use observe::{EVENT_QUEUE, Event, Observer};
#[cfg(feature = "tokio")]
pub use outcome::{AcquireError, Invalid, LeaseOver, Outcome, Ran, Skip, Stop};
#[cfg(feature = "tokio")]
pub use periodic::Periodic;
pub use repo::{Acquire, Claim, Incumbent, Loss, Release, Renew, Repo, microseconds};
pub use timing::{InvalidTiming, MAX_TTL, MIN_STEP, MIN_TTL, OnLost, Options, RELEASE_LIMIT, Timing};
/// What ends a [`Periodic`] or a [`Campaign`], from the crate `tokio-util`.
#[cfg(feature = "tokio")]
pub use tokio_util::sync::CancellationToken;

//! Run a job on exactly one pod at a time: leases with fencing tokens, over any store that implements [`Repo`].

mod clock;
#[cfg(feature = "tokio")]
mod core;
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
mod name;
#[cfg(feature = "tokio")]
mod names;
#[cfg(feature = "tokio")]
mod observe;
#[cfg(feature = "tokio")]
mod outcome;
mod repo;
pub mod tenure;
mod timing;

pub use clock::Moment;
#[cfg(feature = "tokio")]
pub use clock::{BootClock, Clock, TokioClock};
pub use error::{Operation, RepoError, RepoErrorKind};
#[cfg(feature = "tokio")]
pub use guard::Guard;
#[cfg(feature = "tokio")]
pub use held::Held;
pub use inspect::{DbTime, Evict, Inspect, LeaseRow, RowTimes};
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
pub use repo::{Acquire, Claim, Incumbent, Loss, Release, Renew, Repo, microseconds};
pub use timing::{InvalidTiming, MAX_TTL, MIN_STEP, MIN_TTL, OnLost, Options, RELEASE_LIMIT, Timing};

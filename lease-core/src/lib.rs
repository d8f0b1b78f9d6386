//! Run a job on exactly one pod at a time: leases with fencing tokens, over any store that implements [`Repo`].

mod clock;
mod error;
mod inspect;
mod memory;
mod name;
mod repo;
mod timing;

pub use clock::Moment;
#[cfg(feature = "tokio")]
pub use clock::{BootClock, Clock, TokioClock};
pub use error::{Operation, RepoError, RepoErrorKind};
pub use inspect::{DbTime, Evict, Inspect, LeaseRow, RowTimes};
#[cfg(feature = "mutants")]
pub use memory::Mutant;
pub use memory::{MemoryRepo, Row, Rows};
pub use name::{
    Holder, InvalidName, Label, LeaseName, MAX_LABEL_BYTES, MAX_NAME_BYTES, MAX_NOTE_BYTES, Note, SUFFIX_BYTES, Token,
};
pub use repo::{Acquire, Claim, Incumbent, Loss, Release, Renew, Repo, microseconds};
pub use timing::{InvalidTiming, MAX_TTL, MIN_STEP, MIN_TTL, OnLost, Options, RELEASE_LIMIT, Timing};

//! The same work for each library that is measured, so that only the library differs.
//!
//! A library is a [`Contender`]: it can take a lease, wait for one, release it, and perhaps renew it. [`run`] does one [`Work`]
//! with it and answers with an [`Outcome`], which `cargo xtask bench` reads. Before and after what counts it waits at a
//! [`Gate`], where the server's counters are read.

mod contender;
mod gate;
mod outcome;
mod work;
mod works;

pub use contender::{Contender, Place};
pub use gate::Gate;
pub use outcome::{Outcome, Times, Window, cpu_time};
pub use work::{Args, Work, finish, run};

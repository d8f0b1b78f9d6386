#![doc = include_str!("docs.md")]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod checkout;
mod engine;
mod error;
mod session;
mod source;
mod statement;
mod task;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use engine::Engine;
pub use error::{ConnectFailure, Failure, Reason, Subject, Verdict, names_a_host, text};
pub use session::{Backend, Session};
pub use source::{POOL_SIZE, Source};
pub use statement::{Bound, Parameter, Piece, Statement, first, numbered, only, pieces, split};
pub use task::{Task, pause};

/// How long opening one connection may take, from TCP to the session's settings.
pub const CONNECT_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);

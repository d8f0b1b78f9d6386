#![doc = include_str!("docs.md")]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod diagnose;
mod error;
mod inspect;
mod place;
mod repo;
mod schema;
mod sql;
mod store;
mod value;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use lease_core;
pub use repo::SqliteRepo;
pub use schema::SCHEMA;

#![doc = include_str!("docs.md")]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod batch;
mod code;
mod diagnose;
mod engine;
mod error;
pub mod fence;
mod inspect;
mod repo;
mod row;
mod schema;
mod session;
mod sql;
mod table;
mod target;
mod value;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use lease_core;
pub use repo::MysqlRepo;
pub use schema::SCHEMA;

#![doc = include_str!("docs.md")]

mod error;
mod inspect;
mod pool;
mod repo;
mod schema;
mod session;
mod sql;
mod table;
mod task;
mod value;

pub use lease_core;
pub use repo::PostgresRepo;

//! Real database servers for tests: found by URL, started in containers, or run from the programs of this machine.
//!
//! A test asks for [`Postgres::shared`] and takes a [`Database`] of its own from it. A test that breaks its server (stops
//! it, freezes it, makes it read-only) takes [`Postgres::private`].
//!
//! Everything here is blocking code, so that it may be called from any runtime and outside of one: a shared server
//! outlives the runtime of each `#[tokio::test]`.
//!
//! # Where a server comes from
//!
//! 1. The URL in [`POSTGRES_URL`]; `cargo xtask test` starts one server and passes its URL on by it.
//! 2. A container on a reachable Docker engine: the official image if the machine has it, else the image that
//!    `cargo xtask images` builds, else the official image if it can be pulled soon.
//! 3. The newest server programs installed on this machine, run under an unprivileged user in a temporary folder.
//!
//! # What stays behind
//!
//! Nothing, also if the process that started a server is killed: a watchdog process in a session of its own notices the
//! death of its owner, ends the server and removes its folder or container. Local servers need Linux (`/proc`).

mod blocking;
mod container;
mod database;
mod error;
mod image;
mod instance;
mod local;
mod pooler;
mod ports;
mod postgres;
mod processes;
mod programs;
mod ready;
mod settings;
mod watchdog;

pub use database::Database;
pub use error::ServerError;
pub use pooler::Pooler;
pub use postgres::{POSTGRES_URL, Postgres};
pub use settings::{POSTGRES_VERSION, Settings, Source};

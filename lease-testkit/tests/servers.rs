//! The test servers themselves: what a test may do to one, and that none outlives the process that started it.
#![cfg(feature = "servers")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "these are tests, and so are their helpers"
)]

#[path = "servers/dialects.rs"]
mod dialects;
#[path = "servers/galera.rs"]
mod galera;
#[path = "servers/owner.rs"]
mod owner;
#[path = "servers/postgres.rs"]
mod postgres;

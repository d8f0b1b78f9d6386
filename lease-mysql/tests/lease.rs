//! The whole [`Lease`](lease_core::Lease) on a real MySQL and a real MariaDB: its keeper, a real clock, and faults made with the real
//! thing. Each test is named after its case.
//!
//! The waits are real, since what is tested is that limits are kept. A ttl is mostly three seconds: then a statement has
//! 0.6 s, which a server on a busy machine keeps, and f is told half a second before the row is free.

#![allow(clippy::unwrap_used, reason = "these are tests, and so are their helpers")]

mod support;

#[path = "lease/cut_off.rs"]
mod cut_off;
#[path = "lease/process.rs"]
mod process;
#[path = "lease/runtime.rs"]
mod runtime;
#[path = "lease/world.rs"]
mod world;

// What they have in common with those of PostgreSQL.
#[allow(dead_code, reason = "PostgreSQL's tests use all of it")]
#[path = "../../lease-postgres/tests/lease/child.rs"]
mod child;
#[path = "../../lease-postgres/tests/lease/network.rs"]
mod network;
#[allow(dead_code, reason = "PostgreSQL's tests use all of it")]
#[path = "../../lease-postgres/tests/lease/relay.rs"]
mod relay;

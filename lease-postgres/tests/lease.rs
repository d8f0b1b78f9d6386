//! The whole [`Lease`](lease_core::Lease) on a real PostgreSQL: its keeper, a real clock, and faults made with the real
//! thing. Each test is named after its case.
//!
//! The waits are real, since what is tested is that limits are kept. A ttl is mostly three seconds: then a statement has
//! 0.6 s, which a server on a busy machine keeps, and f is told half a second before the row is free.

#![allow(clippy::unwrap_used, reason = "these are tests, and so are their helpers")]

#[path = "lease/child.rs"]
mod child;
#[path = "lease/cut_off.rs"]
mod cut_off;
#[path = "lease/diagnose.rs"]
mod diagnose;
#[path = "lease/dropped.rs"]
mod dropped;
#[path = "lease/failover.rs"]
mod failover;
#[path = "lease/fence.rs"]
mod fence;
#[path = "lease/frozen.rs"]
mod frozen;
#[path = "lease/handoff.rs"]
mod handoff;
#[path = "lease/network.rs"]
mod network;
#[path = "lease/outage.rs"]
mod outage;
#[path = "lease/process.rs"]
mod process;
#[path = "lease/product.rs"]
mod product;
#[path = "lease/refused.rs"]
mod refused;
#[path = "lease/relay.rs"]
mod relay;
#[path = "lease/runtime.rs"]
mod runtime;
#[path = "lease/schema.rs"]
mod schema;
#[path = "lease/world.rs"]
mod world;

//! What depends on the driver and the server: error kinds, lost connections, isolation levels, costs. No fakes.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod support;

#[path = "sql/bad_input.rs"]
mod bad_input;
#[path = "sql/conflicts.rs"]
mod conflicts;
#[path = "sql/cost.rs"]
mod cost;
#[path = "sql/diagnose.rs"]
mod diagnose;
#[path = "sql/faults.rs"]
mod faults;
#[path = "sql/foreign_pool.rs"]
mod foreign_pool;
#[path = "sql/go.rs"]
mod go;
#[path = "sql/grants.rs"]
mod grants;
#[path = "sql/hosts.rs"]
mod hosts;
#[path = "sql/isolation.rs"]
mod isolation;
#[path = "sql/laws.rs"]
mod laws;
#[path = "sql/moving.rs"]
mod moving;
#[path = "sql/notify.rs"]
mod notify;
#[path = "sql/pgbouncer.rs"]
mod pgbouncer;
#[path = "sql/schema.rs"]
mod schema;
#[path = "sql/tls.rs"]
mod tls;
#[path = "sql/zones.rs"]
mod zones;

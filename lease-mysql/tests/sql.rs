//! What depends on the driver and the server: error kinds, lost connections, isolation levels, settings. No fakes.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod support;

#[path = "sql/bad_input.rs"]
mod bad_input;
#[path = "sql/batch.rs"]
mod batch;
#[path = "sql/conflicts.rs"]
mod conflicts;
#[path = "sql/damage.rs"]
mod damage;
#[path = "sql/diagnose.rs"]
mod diagnose;
#[path = "sql/faults.rs"]
mod faults;
#[path = "sql/fence.rs"]
mod fence;
#[path = "sql/foreign_pool.rs"]
mod foreign_pool;
#[path = "sql/galera.rs"]
mod galera;
#[path = "sql/go.rs"]
mod go;
#[path = "sql/grants.rs"]
mod grants;
#[path = "sql/laws.rs"]
mod laws;
#[path = "sql/moving.rs"]
mod moving;
#[path = "sql/schema.rs"]
mod schema;
#[path = "sql/settings.rs"]
mod settings;
#[path = "sql/tls.rs"]
mod tls;

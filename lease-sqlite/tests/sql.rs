//! What depends on SQLite and on the file system: locks of other processes, files that can't be used, several processes on
//! one file. No fakes.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod support;

#[path = "sql/damage.rs"]
mod damage;
#[path = "sql/diagnose.rs"]
mod diagnose;
#[path = "sql/errors.rs"]
mod errors;
#[path = "sql/locks.rs"]
mod locks;
#[path = "sql/mounts.rs"]
mod mounts;
#[path = "sql/processes.rs"]
mod processes;

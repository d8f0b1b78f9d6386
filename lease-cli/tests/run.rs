//! `lease run`, the real binary: its exit codes and its report, signals, deaths, and a terminal.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

#[path = "run/codes.rs"]
mod codes;
#[path = "run/death.rs"]
mod death;
#[path = "run/job.rs"]
mod job;
#[path = "run/lost.rs"]
mod lost;
#[path = "run/signals.rs"]
mod signals;
mod support;
#[path = "run/terminal.rs"]
mod terminal;

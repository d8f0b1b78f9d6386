//! Whatever is given or found, hostile connection URLs, servers that talk nonsense, damaged tables: a typed error or a
//! sensible answer within its bound, and no password in any text.
//!
//! Each property replays the files of its folder below `properties/corpus` first, then the failures that were found
//! once (`properties/proptest-regressions`, written by proptest and kept in the repository), then random inputs, the same
//! ones each time.
//! A long run, with others each time:
//! `PROPTEST_CASES=10000 cargo test -p lease-postgres --test properties -- --include-ignored`.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod support;

#[path = "properties/damage.rs"]
mod damage;
#[path = "properties/encoding.rs"]
mod encoding;
#[path = "properties/found.rs"]
mod found;
#[path = "properties/nonsense.rs"]
mod nonsense;
#[path = "properties/ruin.rs"]
mod ruin;
#[path = "../../lease-core/tests/properties/run.rs"]
mod run;
#[path = "properties/urls.rs"]
mod urls;

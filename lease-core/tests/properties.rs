//! Whatever goes in, names, options and sequences of operations, is judged as rules say that are written here a second
//! time.
//!
//! Each property replays the files of its folder below `properties/corpus` first, then the failures that were found
//! once (`properties/proptest-regressions`, written by proptest and kept in the repository), then random inputs, the same
//! ones each time.
//! By default that takes seconds. A long run, with others each time:
//! `PROPTEST_CASES=1000000 cargo test -p lease-core --test properties`.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

#[path = "properties/book.rs"]
mod book;
#[path = "properties/names.rs"]
mod names;
#[path = "properties/options.rs"]
mod options;
#[path = "properties/rows.rs"]
mod rows;
#[path = "properties/run.rs"]
mod run;

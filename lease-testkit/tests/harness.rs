//! A case ends well, by a panic or by its limit, and its store is closed each time.

#![expect(clippy::unwrap_used, reason = "helpers of a test are a test too")]

use std::future::pending;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::Duration;

use lease_core::MemoryRepo;
use lease_testkit::{Harness, run_case};

static CLOSED: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());

struct Closing;

impl Harness for Closing {
    type Repo = MemoryRepo;
    const LIMIT: Duration = Duration::from_millis(20);

    async fn open() -> Self {
        Self
    }

    async fn client(&self) -> MemoryRepo {
        MemoryRepo::new()
    }

    async fn step_clock(&self, _by_us: i64) {}

    async fn close(self) {
        CLOSED.lock().unwrap().push(thread::current().id());
    }
}

/// How the case ended, if not well. Each test has a thread of its own, so the mark of closing is its own too.
fn end_of(case: impl AsyncFnOnce(&Closing) + std::panic::UnwindSafe) -> Option<String> {
    let end = catch_unwind(|| run_case(case));
    assert!(
        CLOSED.lock().unwrap().contains(&thread::current().id()),
        "the store must be closed"
    );
    let panic = end.err()?;
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
}

#[test]
fn a_case_that_ends_well() {
    assert_eq!(end_of(async |_| {}), None);
}

#[test]
fn a_case_that_panics() {
    assert_eq!(
        end_of(async |_| panic!("L1 is broken")).as_deref(),
        Some("L1 is broken")
    );
}

#[test]
fn a_case_that_hangs() {
    assert_eq!(
        end_of(async |_| pending().await).as_deref(),
        Some("the case did not end within 20ms")
    );
}

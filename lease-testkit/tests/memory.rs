//! `MemoryRepo` passes the whole suite.

use lease_core::MemoryRepo;
use lease_testkit::Harness;

struct Memory(MemoryRepo);

impl Harness for Memory {
    type Repo = MemoryRepo;

    async fn open() -> Self {
        Self(MemoryRepo::new())
    }

    async fn client(&self) -> MemoryRepo {
        self.0.clone()
    }

    async fn step_clock(&self, by_us: i64) {
        self.0.step_clock(by_us);
    }
}

lease_testkit::conformance!(Memory; inspect);

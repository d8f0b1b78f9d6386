//! Pods on one store with faults in between, all on one paused clock.

use std::time::Duration;

use lease_core::{Clock, Label, Lease, LeaseBuilder, LeaseName, MemoryRepo, Row, TokioClock};
use lease_testkit::FaultyRepo;
use tokio::runtime::Handle;

pub const TTL: Duration = Duration::from_secs(12);
pub const NAME: LeaseName = LeaseName::from_static("job");

pub struct World {
    pub clock: TokioClock,
    pub store: MemoryRepo,
}

#[allow(dead_code, reason = "each test file uses what it needs")]
impl World {
    /// Call it inside a runtime with paused time.
    pub fn new() -> Self {
        let clock = TokioClock::new();
        Self {
            clock,
            store: MemoryRepo::with_time(move || clock.now()),
        }
    }

    /// A pod and the faults on its way to the store.
    pub fn pod(&self, label: &str) -> (Lease, FaultyRepo<MemoryRepo>) {
        let faults = FaultyRepo::with_clock(self.store.clone(), self.clock);
        (self.builder(label, faults.clone()).build(), faults)
    }

    pub fn builder(&self, label: &str, faults: FaultyRepo<MemoryRepo>) -> LeaseBuilder {
        let label = Label::new(label).unwrap();
        Lease::builder(faults)
            .label(label)
            .clock(self.clock)
            .keeper_on(Handle::current())
    }

    pub async fn sleep(&self, duration: Duration) {
        self.clock.sleep_until(self.clock.now() + duration).await;
    }

    /// Milliseconds of the store's clock.
    pub fn millis(&self) -> i64 {
        self.store.now_us() / 1_000
    }

    pub fn row(&self) -> Option<Row> {
        self.store.snapshot().remove(NAME.as_str())
    }

    pub fn is_free(&self) -> bool {
        self.row().is_none_or(|row| row.expires_at <= self.store.now_us())
    }
}

#[allow(dead_code, reason = "each test file uses what it needs")]
pub const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[allow(dead_code, reason = "each test file uses what it needs")]
pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

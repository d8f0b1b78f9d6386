//! One store and its pods, all on one paused clock.

use std::time::Duration;

use lease_core::{Clock, Label, Lease, LeaseBuilder, LeaseName, MemoryRepo, Row, TokioClock};
use tokio::runtime::Handle;

pub const TTL: Duration = Duration::from_secs(12);
pub const NAME: LeaseName = LeaseName::from_static("job");

pub struct World {
    pub clock: TokioClock,
    pub repo: MemoryRepo,
}

#[allow(dead_code, reason = "each test file uses what it needs")]
impl World {
    /// Call it inside a runtime with paused time.
    pub fn new() -> Self {
        let clock = TokioClock::new();
        Self {
            clock,
            repo: MemoryRepo::with_time(move || clock.now()),
        }
    }

    pub fn pod(&self, label: &str) -> Lease {
        self.builder(label).build()
    }

    pub fn builder(&self, label: &str) -> LeaseBuilder {
        let label = Label::new(label).unwrap();
        Lease::builder(self.repo.clone())
            .label(label)
            .clock(self.clock)
            .keeper_on(Handle::current())
    }

    pub async fn sleep(&self, duration: Duration) {
        self.clock.sleep_until(self.clock.now() + duration).await;
    }

    pub fn row(&self) -> Option<Row> {
        self.repo.snapshot().remove(NAME.as_str())
    }

    pub fn is_free(&self) -> bool {
        self.row().is_none_or(|row| row.expires_at <= self.repo.now_us())
    }
}

#[allow(dead_code, reason = "each test file uses what it needs")]
pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

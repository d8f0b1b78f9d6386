//! [`Plan`]: how much of everything, for figures that are to be kept, or for a look.

use std::time::Duration;

/// How long and how often.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) rounds: u32,
    /// Of each run.
    pub(super) seconds: f64,
    /// Turns of a lease from pod to pod.
    pub(super) turns: u32,
    /// Leases held by one process.
    pub(super) held: Vec<usize>,
    pub(super) held_ttl: Duration,
    /// Renewals of each of them while it is looked.
    pub(super) held_rounds: u32,
    /// Of many pods that tick.
    pub(super) tick_seconds: f64,
    /// Rounds of that.
    pub(super) tick_rounds: u32,
    /// How long a snapshot stays open, and how long it is looked at afterwards, in seconds.
    pub(super) aging: (u32, u32),
    /// Pairs that callgrind counts.
    pub(super) counted_pairs: u32,
    /// Connections.
    pub(super) connections: &'static [usize],
}

impl Plan {
    /// For figures to keep.
    pub(super) fn full(rounds: u32, seconds: f64) -> Self {
        Self {
            rounds,
            seconds,
            turns: 60,
            held: vec![100, 1_000, 10_000],
            held_ttl: Duration::from_secs(30),
            held_rounds: 3,
            tick_seconds: 60.0,
            tick_rounds: 1,
            aging: (600, 60),
            counted_pairs: 5_000,
            connections: &[1, 8, 32],
        }
    }

    /// For a look, whose figures are not kept.
    pub(super) fn quick() -> Self {
        Self {
            rounds: 2,
            seconds: 0.4,
            turns: 4,
            held: vec![100, 1_000],
            held_ttl: Duration::from_millis(1_500),
            held_rounds: 2,
            tick_seconds: 2.0,
            tick_rounds: 1,
            aging: (6, 2),
            counted_pairs: 200,
            connections: &[1, 8],
        }
    }

    /// How long a program may take between two of its gates.
    pub(super) fn limit(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds) + Duration::from_secs(60)
    }
}

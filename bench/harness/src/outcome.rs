//! [`Outcome`]: what a piece of work cost.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;

/// What came of it.
#[derive(Debug, Default, Serialize)]
pub struct Outcome {
    /// How often it was done.
    pub operations: u64,
    /// How long that took.
    pub seconds: f64,
    /// What this process used of the CPUs meanwhile, user and system.
    pub cpu_seconds: f64,
    /// How long one operation took: the median, the 99th of a hundred, and the slowest, in microseconds.
    pub p50_us: f64,
    /// See `p50_us`.
    pub p99_us: f64,
    /// See `p50_us`.
    pub max_us: f64,
    /// What else is to be known.
    pub more: BTreeMap<&'static str, f64>,
}

/// From the beginning of what counts to its end.
#[derive(Debug)]
pub struct Window {
    began: Instant,
    cpu: f64,
}

impl Window {
    /// Now.
    ///
    /// # Errors
    /// The system does not say what the process has used.
    pub fn begin() -> anyhow::Result<Self> {
        Ok(Self {
            cpu: cpu_time()?,
            began: Instant::now(),
        })
    }

    /// Now, with how long each operation took.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn end(self, times: &Times) -> anyhow::Result<Outcome> {
        let seconds = self.began.elapsed().as_secs_f64();
        Ok(Outcome {
            operations: times.len(),
            seconds,
            cpu_seconds: cpu_time()? - self.cpu,
            p50_us: times.us(0.5),
            p99_us: times.us(0.99),
            max_us: times.0.max() as f64 / 1_000.0,
            more: BTreeMap::new(),
        })
    }
}

/// An hour, in nanoseconds.
const LONGEST: u64 = 3_600_000_000_000;

/// How long each operation took, to three digits.
#[derive(Debug, Clone)]
pub struct Times(Histogram<u64>);

impl Times {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3);
        Self(histogram.expect("the bounds are in order, and three digits are allowed"))
    }

    pub(crate) fn add(&mut self, took: Duration) {
        self.0
            .saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// So much of it was at most that long, in microseconds.
    pub(crate) fn us(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1_000.0
    }

    pub(crate) fn merge(&mut self, other: &Self) -> anyhow::Result<()> {
        Ok(self.0.add(&other.0)?)
    }
}

/// What this process has used of the CPUs, in seconds.
///
/// # Errors
/// The system does not say.
pub fn cpu_time() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(micros as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_clients_come_back_to_three_digits() {
        let mut sum = Times::new();
        for client in 1..=2_u64 {
            let mut times = Times::new();
            (0..100).for_each(|_| times.add(Duration::from_micros(100 * client)));
            times.add(Duration::from_secs(2));
            sum.merge(&times).unwrap();
        }
        assert_eq!(sum.len(), 202);
        let is = |us: f64, wanted: f64| (us / wanted - 1.0).abs() < 0.002;
        assert!(is(sum.us(0.25), 100.0) && is(sum.us(0.75), 200.0), "{sum:?}");
        let outcome = Window::begin().unwrap().end(&sum).unwrap();
        assert!(is(outcome.max_us, 2e6), "{outcome:?}");
    }
}

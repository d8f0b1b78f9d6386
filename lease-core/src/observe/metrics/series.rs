//! [`Series`]: the metrics of one lease, or of all those together that have none of their own.

use std::sync::Arc;
use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Label, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

use crate::held::Tenancy;
use crate::{Event, LeaseName, Skip};

const HELD: &str = "lease_held";
const REMAINING: &str = "lease_remaining_seconds";
const OVERRUNNING: &str = "lease_overrunning";
const ACQUIRE: &str = "lease_acquire_total";
const SKIPPED: &str = "lease_skipped_total";
const RENEW: &str = "lease_renew_seconds";
const RENEW_FAILURES: &str = "lease_renew_failures_total";
const STOPPED: &str = "lease_stopped_total";
const OVERRUN: &str = "lease_overrun_seconds";
pub(super) const EVENTS_DROPPED: &str = "lease_events_dropped_total";

/// The words of [`Skip`] and [`Stop`](crate::Stop): as many as there are, so labels of them cost nothing.
const SKIPS: [&str; 4] = ["busy", "busy_here", "store", "shutting_down"];
const STOPS: [&str; 6] = ["lost", "overdue", "time_limit", "shut_down", "resigned", "keeper"];

pub(super) fn describe() {
    describe_gauge!(HELD, "Leases that this process holds");
    describe_gauge!(
        REMAINING,
        Unit::Seconds,
        "Time until work is dropped if no further renewal succeeds, of the lease that has least; 0 if none is held"
    );
    describe_gauge!(OVERRUNNING, "Work that goes on though its lease is over");
    describe_counter!(ACQUIRE, "Tries to take a lease, by what the store answered");
    describe_counter!(SKIPPED, "Times that work was not started, by cause");
    describe_histogram!(RENEW, Unit::Seconds, "Time until a renewal was answered");
    describe_counter!(RENEW_FAILURES, "Renewals without an answer");
    describe_counter!(STOPPED, "Times that work was told to stop, by cause");
    describe_histogram!(
        OVERRUN,
        Unit::Seconds,
        "Time that work went on after its lease was over"
    );
    describe_counter!(
        EVENTS_DROPPED,
        "Events lost because a subscriber or observer was too slow"
    );
}

pub(super) struct Series {
    held: Gauge,
    remaining: Gauge,
    overrunning: Gauge,
    granted: Counter,
    busy: Counter,
    error: Counter,
    skipped: [(&'static str, Counter); SKIPS.len()],
    renew: Histogram,
    renew_failures: Counter,
    stopped: [(&'static str, Counter); STOPS.len()],
    overrun: Histogram,
    shown: Seen,
}

/// What a look saw.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Seen {
    held: u32,
    over: u32,
    least: Option<Duration>,
}

impl Seen {
    pub(super) fn add(&mut self, tenancy: &Arc<Tenancy>) {
        let remaining = tenancy.drop_at().since(tenancy.clock.now());
        if remaining.is_zero() {
            self.over += 1;
        } else {
            self.held += 1;
            self.least = Some(self.least.map_or(remaining, |least| least.min(remaining)));
        }
    }
}

impl Series {
    /// Of one lease, by a label; without a name of all that have no series of their own.
    pub(super) fn new(name: Option<&LeaseName>) -> Self {
        let labels = |more: Option<(&'static str, &'static str)>| {
            let lease = name.map(|name| Label::new("lease", name.as_str().to_owned()));
            let more = more.map(|(key, word)| Label::from_static_parts(key, word));
            lease.into_iter().chain(more).collect::<Vec<_>>()
        };
        let acquire = |result| counter!(ACQUIRE, labels(Some(("result", result))));
        let by_cause = |metric: &'static str, word| (word, counter!(metric, labels(Some(("cause", word)))));
        Self {
            held: gauge!(HELD, labels(None)),
            remaining: gauge!(REMAINING, labels(None)),
            overrunning: gauge!(OVERRUNNING, labels(None)),
            granted: acquire("granted"),
            busy: acquire("busy"),
            error: acquire("error"),
            skipped: SKIPS.map(|word| by_cause(SKIPPED, word)),
            renew: histogram!(RENEW, labels(None)),
            renew_failures: counter!(RENEW_FAILURES, labels(None)),
            stopped: STOPS.map(|word| by_cause(STOPPED, word)),
            overrun: histogram!(OVERRUN, labels(None)),
            shown: Seen::default(),
        }
    }

    pub(super) fn count(&self, event: &Event) {
        match event {
            Event::Acquired { .. } => self.granted.increment(1),
            Event::Skipped { skip, .. } => {
                match skip {
                    Skip::Busy(_) => self.busy.increment(1),
                    Skip::Store(_) => self.error.increment(1),
                    // The store was not asked.
                    Skip::BusyHere | Skip::ShuttingDown => {}
                }
                increment(&self.skipped, skip.as_str());
            }
            Event::Renewed { took, .. } => self.renew.record(took.as_secs_f64()),
            Event::RenewFailed { .. } => self.renew_failures.increment(1),
            Event::Stopped { stop, .. } => increment(&self.stopped, stop.as_str()),
            Event::Ended { overrun, .. } if !overrun.is_zero() => self.overrun.record(overrun.as_secs_f64()),
            Event::Ended { .. } | Event::Overrun { .. } | Event::Failed { .. } | Event::KeeperDied => {}
        }
    }

    /// Gauges that count are moved by the difference, since another `Lease` of this process may have the same ones.
    pub(super) fn show(&mut self, seen: Seen) {
        let shown = std::mem::replace(&mut self.shown, seen);
        shift(&self.held, shown.held, seen.held);
        shift(&self.overrunning, shown.over, seen.over);
        if seen.least != shown.least {
            self.remaining.set(seen.least.unwrap_or_default().as_secs_f64());
        }
    }
}

fn shift(gauge: &Gauge, from: u32, to: u32) {
    if to >= from {
        gauge.increment(f64::from(to - from));
    } else {
        gauge.decrement(f64::from(from - to));
    }
}

fn increment(counters: &[(&'static str, Counter)], word: &str) {
    if let Some((_, counter)) = counters.iter().find(|(known, _)| *known == word) {
        counter.increment(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loss, Operation, RepoError, RepoErrorKind, Stop};

    /// A cause that is not in the list would not be counted. The matches fail to compile for one that is new.
    #[test]
    fn every_cause_has_a_counter() {
        let error = RepoError::new(RepoErrorKind::Other, Operation::Acquire);
        for skip in [Skip::Busy(None), Skip::BusyHere, Skip::Store(error), Skip::ShuttingDown] {
            match skip {
                Skip::Busy(_) | Skip::BusyHere | Skip::Store(_) | Skip::ShuttingDown => {}
            }
            assert!(SKIPS.contains(&skip.as_str()), "{skip:?}");
        }
        let stops = [
            Stop::Lost(Loss::Gone),
            Stop::Overdue { last_error: None },
            Stop::TimeLimit,
            Stop::ShutDown,
            Stop::Resigned,
            Stop::Keeper,
        ];
        for stop in stops {
            match stop {
                Stop::Lost(_)
                | Stop::Overdue { .. }
                | Stop::TimeLimit
                | Stop::ShutDown
                | Stop::Resigned
                | Stop::Keeper => {}
            }
            assert!(STOPS.contains(&stop.as_str()), "{stop:?}");
        }
    }
}

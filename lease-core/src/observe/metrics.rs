//! [`Meter`]: the metrics of one `Lease`, over the facade `metrics`. `docs/operating.md` says what each is for.
//!
//! Counters and histograms come from events, and an event that is dropped is missing in them. Gauges don't: they are
//! read from the tenures themselves, so that none stays up when the end of a tenure went untold.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use metrics::{Counter, counter};

use super::Event;
use crate::clock::boot_time;
use crate::held::Tenancy;
use crate::{LeaseName, Moment};

mod series;

use series::{Seen, Series};

/// How often the gauges are read anew while a lease is held.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How soon after a look the next may follow, when there was an event: with ten thousand leases one takes a millisecond.
const LOOK_REST: Duration = Duration::from_millis(100);
/// How many tenures may wait to be looked at before those that have ended are sorted out.
const FEW: usize = 64;

/// The tenures that began and that the meter has not seen yet.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Vec<Weak<Tenancy>>>>);

impl Ledger {
    pub(super) fn enter(&self, tenancy: &Arc<Tenancy>) {
        let mut tenures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A meter that an observer has blocked takes none away. It must not cost memory for tenures that are over.
        if tenures.len() >= FEW && tenures.len() == tenures.capacity() {
            tenures.retain(|tenancy| tenancy.strong_count() > 0);
        }
        tenures.push(Arc::downgrade(tenancy));
    }

    fn take(&self) -> Vec<Weak<Tenancy>> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(super) struct Meter {
    ledger: Ledger,
    /// Which series is whose. All other leases have the first one together.
    per_lease: HashMap<LeaseName, usize>,
    series: Vec<Series>,
    /// The tenures that are not over, each with its series.
    tenures: Vec<(usize, Weak<Tenancy>)>,
    looked_at: Moment,
    /// Whether there was an event since.
    stirred: bool,
    dropped: Arc<AtomicU64>,
    dropped_told: u64,
    dropped_total: Counter,
}

impl Meter {
    /// Registers everything with the recorder that is current here, so that each series is there from the start.
    pub(super) fn new(per_lease: &[LeaseName], dropped: Arc<AtomicU64>) -> (Ledger, Self) {
        series::describe();
        let numbered = per_lease.iter().cloned().zip(1..).collect::<HashMap<_, usize>>();
        let own = per_lease.iter().map(|name| Series::new(Some(name)));
        let meter = Self {
            ledger: Ledger::default(),
            per_lease: numbered,
            series: std::iter::once(Series::new(None)).chain(own).collect(),
            tenures: Vec::new(),
            looked_at: Moment::ZERO,
            stirred: false,
            dropped,
            dropped_told: 0,
            dropped_total: counter!(series::EVENTS_DROPPED),
        };
        (meter.ledger.clone(), meter)
    }

    pub(super) fn count(&mut self, event: &Event) {
        self.stirred = true;
        let (Event::Acquired { name, .. }
        | Event::Skipped { name, .. }
        | Event::Renewed { name, .. }
        | Event::RenewFailed { name, .. }
        | Event::Stopped { name, .. }
        | Event::Overrun { name, .. }
        | Event::Ended { name, .. }
        | Event::Failed { name, .. }) = event
        else {
            return;
        };
        self.series[self.index(name)].count(event);
    }

    /// In what time to look, if no event comes before. `None` while there is nothing to look at.
    pub(super) fn look_in(&self) -> Option<Duration> {
        let pause = match self.tenures.is_empty() {
            _ if self.stirred => LOOK_REST,
            false => LOOK_EVERY,
            true => return None,
        };
        Some((self.looked_at + pause).since(boot_time()))
    }

    /// Reads the gauges anew, if it is time to.
    pub(super) fn look(&mut self) {
        if self.look_in() != Some(Duration::ZERO) {
            return;
        }
        (self.looked_at, self.stirred) = (boot_time(), false);
        for tenancy in self.ledger.take() {
            let index = tenancy.upgrade().map(|tenancy| self.index(&tenancy.name));
            self.tenures.extend(index.map(|index| (index, tenancy)));
        }
        let mut seen = vec![Seen::default(); self.series.len()];
        self.tenures.retain(|(index, tenancy)| {
            let running = tenancy.upgrade().filter(|t| !t.ended.load(Ordering::SeqCst));
            running.inspect(|tenancy| seen[*index].add(tenancy)).is_some()
        });
        for (series, seen) in self.series.iter_mut().zip(seen) {
            series.show(seen);
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        self.dropped_total.increment(dropped - self.dropped_told);
        self.dropped_told = dropped;
    }

    fn index(&self, name: &LeaseName) -> usize {
        self.per_lease.get(name).copied().unwrap_or(0)
    }
}

impl Drop for Meter {
    /// Nothing is held by a `Lease` that is gone.
    fn drop(&mut self) {
        for series in &mut self.series {
            series.show(Seen::default());
        }
    }
}

//! [`Batch`]: many worlds, one after the other by seed, on any number of threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use super::invariant::{Violation, judge};
use super::{Broken, Tally, play};

/// A world in which an invariant does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its seed.
    pub seed: u64,
    /// How many tenures there had been in this batch by its end.
    pub tenures: u64,
    /// What was violated in it.
    pub violations: Vec<Violation>,
}

/// What came of many worlds. The same for any number of threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The seed after the last.
    pub until: u64,
    /// All that was counted.
    pub tally: Tally,
    /// Worlds with a violation.
    pub found: Vec<Found>,
}

impl Batch {
    /// Plays worlds from the seed `from` on until there were `tenures`, or until `enough` says so.
    #[must_use]
    pub fn play(
        from: u64,
        tenures: u64,
        threads: usize,
        broken: Option<Broken>,
        enough: impl Fn(&Self) -> bool,
    ) -> Self {
        let (next, stop) = (AtomicU64::new(from), AtomicBool::new(false));
        let (send, receive) = mpsc::sync_channel(threads * 4);
        let mut batch = Self {
            until: from,
            ..Self::default()
        };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (send, next, stop) = (send.clone(), &next, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        let history = play(seed, broken);
                        if send.send((seed, Tally::of(&history), judge(&history))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(send);
            // Worlds come in any order, and count in the order of their seeds.
            let mut early = BTreeMap::new();
            'play: for (seed, tally, violations) in &receive {
                early.insert(seed, (tally, violations));
                while let Some((tally, violations)) = early.remove(&batch.until) {
                    batch.add(&tally, violations);
                    if batch.tally.tenures >= tenures || enough(&batch) {
                        break 'play;
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
            drop(receive);
        });
        batch
    }

    fn add(&mut self, tally: &Tally, violations: Vec<Violation>) {
        self.tally += tally;
        if !violations.is_empty() {
            self.found.push(Found {
                seed: self.until,
                tenures: self.tally.tenures,
                violations,
            });
        }
        self.until += 1;
    }
}

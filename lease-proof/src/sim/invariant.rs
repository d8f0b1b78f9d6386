//! What must hold in every world. Each is a plain function of what was seen.

use std::collections::BTreeMap;
use std::fmt;

use lease_core::Timing;

use super::seen::{History, HolderId, Seen, Sent, Statement, Tick, What};

mod bounds;
mod burned;
mod clones;
mod fresh;
mod last;
mod live;
mod minimum;
mod order;
mod orphans;
mod recovery;
mod rows;
mod stops;
#[cfg(test)]
mod tests;
mod tokens;

/// Something that must hold.
pub struct Invariant {
    /// Its name, as it stands in reports.
    pub name: &'static str,
    check: fn(&Facts<'_>) -> Check,
}

/// All of them.
pub const ALL: &[Invariant] = &[
    Invariant {
        name: "order",
        check: order::check,
    },
    Invariant {
        name: "tokens",
        check: tokens::check,
    },
    Invariant {
        name: "rows",
        check: rows::check,
    },
    Invariant {
        name: "live",
        check: live::check,
    },
    Invariant {
        name: "fresh",
        check: fresh::check,
    },
    Invariant {
        name: "burned",
        check: burned::check,
    },
    Invariant {
        name: "last",
        check: last::check,
    },
    Invariant {
        name: "stops",
        check: stops::check,
    },
    Invariant {
        name: "orphans",
        check: orphans::check,
    },
    Invariant {
        name: "minimum",
        check: minimum::check,
    },
    Invariant {
        name: "bounds",
        check: bounds::check,
    },
    Invariant {
        name: "recovery",
        check: recovery::check,
    },
    Invariant {
        name: "clones",
        check: clones::check,
    },
];

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: &'static str,
    /// When, by true time.
    pub at: Tick,
    /// How.
    pub how: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, at, how } = self;
        write!(f, "{invariant} at {at}: {how}")
    }
}

/// The first violation of each invariant.
#[must_use]
pub fn judge(history: &History) -> Vec<Violation> {
    let facts = Facts::of(history);
    let violations = ALL.iter().filter_map(|invariant| {
        let (at, how) = (invariant.check)(&facts).err()?;
        Some(Violation {
            invariant: invariant.name,
            at,
            how,
        })
    });
    violations.collect()
}

/// Holds, or when it did not, and how.
type Check = Result<(), (Tick, String)>;

/// A violation at that time.
fn violated<T>(at: Tick, how: impl Into<String>) -> Result<T, (Tick, String)> {
    Err((at, how.into()))
}

/// A history, and what several invariants ask of it.
struct Facts<'a> {
    history: &'a History,
    /// On which pod each `Lease` is.
    pods: BTreeMap<usize, usize>,
    /// When each pod stood still. A crash has no end.
    standing: BTreeMap<usize, Vec<(Tick, Tick)>>,
    /// The acquire of each holder.
    acquires: BTreeMap<HolderId, Sent>,
}

impl<'a> Facts<'a> {
    fn of(history: &'a History) -> Self {
        let mut facts = Self {
            history,
            pods: BTreeMap::new(),
            standing: BTreeMap::new(),
            acquires: BTreeMap::new(),
        };
        for Seen { at, what } in &history.seen {
            match what {
                What::Born { lease, pod } => drop(facts.pods.insert(*lease, *pod)),
                What::Stands { pod } | What::Crashed { pod } => {
                    facts.standing.entry(*pod).or_default().push((*at, Tick::MAX));
                }
                What::GoesOn { pod } => {
                    if let Some(last) = facts.standing.entry(*pod).or_default().last_mut() {
                        last.1 = *at;
                    }
                }
                What::Sent(sent) if sent.statement == Statement::Acquire => {
                    facts.acquires.entry(sent.holder).or_insert(*sent);
                }
                _ => {}
            }
        }
        facts
    }

    fn seen(&self) -> impl Iterator<Item = (Tick, &'a What)> + use<'a> {
        self.history.seen.iter().map(|seen| (seen.at, &seen.what))
    }

    fn timing(&self, name: usize) -> &'a Timing {
        &self.history.names[name]
    }

    /// The times of a holder's tenure.
    fn timing_of(&self, holder: HolderId) -> Option<&'a Timing> {
        self.acquires.get(&holder).map(|acquire| self.timing(acquire.name))
    }

    /// Whether the pod of a `Lease` stood still, or was gone, at any time in between.
    fn stood(&self, lease: usize, from: Tick, to: Tick) -> bool {
        let standing = self.pods.get(&lease).and_then(|pod| self.standing.get(pod));
        standing.is_some_and(|times| times.iter().any(|(begin, end)| *begin <= to && *end >= from))
    }
}

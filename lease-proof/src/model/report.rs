//! What the command and the tests run: an exploration to its end, a mutant until it is noticed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lease_core::{BootClock, Clock};
use stateright::{Checker, HasDiscoveries, Model};

use super::bounds::Bounds;
use super::mutants::Noticed;
use super::runs::SMALL;
use super::sightings::Sightings;
use super::world::World;

/// By the name of a rule that was seen broken: the steps that lead there.
pub type Counterexamples = BTreeMap<&'static str, Vec<String>>;

/// Everything within some bounds was tried.
#[derive(Debug)]
pub struct Explored {
    /// Within which.
    pub bounds: Bounds,
    /// How many states there are.
    pub unique: usize,
    /// How many transitions were taken.
    pub transitions: usize,
    /// How many steps the longest path had that the checker went.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// What was seen on the way.
    pub sightings: Arc<Sightings>,
    /// What must be empty.
    pub counterexamples: Counterexamples,
}

/// Tries everything within `bounds`.
///
/// # Errors
/// The times do not fit together.
pub fn explore(bounds: Bounds, threads: usize) -> anyhow::Result<Explored> {
    let world = World::new(bounds, None)?;
    let sightings = world.sightings();
    let started_at = BootClock.now();
    // It goes deep first: that takes memory for the states' fingerprints and for one path.
    let checker = world.checker().threads(threads);
    let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
    Ok(Explored {
        bounds,
        unique: checker.unique_state_count(),
        transitions: checker.state_count(),
        depth: checker.max_depth(),
        took: BootClock.now().since(started_at),
        sightings,
        counterexamples: counterexamples(&checker),
    })
}

/// A mutant was run until something was broken.
#[derive(Debug)]
pub struct Judged {
    /// Which, and what was expected.
    pub noticed: Noticed,
    /// How many states it took.
    pub unique: usize,
    /// The shortest ways to break a rule.
    pub counterexamples: Counterexamples,
}

impl Judged {
    /// Whether the expected rule noticed it.
    #[must_use]
    pub fn as_expected(&self) -> bool {
        self.counterexamples.contains_key(self.noticed.rule)
    }
}

/// Runs a mutant in its small run until a rule is broken.
///
/// # Errors
/// There is no such run, or its times do not fit together.
pub fn judge(noticed: Noticed) -> anyhow::Result<Judged> {
    let bounds = SMALL.iter().find(|bounds| bounds.name == noticed.run);
    let bounds = bounds.ok_or_else(|| anyhow::anyhow!("no run is called {}", noticed.run))?;
    let world = World::new(*bounds, Some(noticed.broken))?;
    // It goes broad first, so that what it finds is short.
    let checker = world.checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    Ok(Judged {
        noticed,
        unique: checker.unique_state_count(),
        counterexamples: counterexamples(&checker),
    })
}

fn counterexamples(checker: &impl Checker<World>) -> Counterexamples {
    let found = checker.discoveries().into_iter();
    found
        .map(|(rule, path)| {
            let steps = path.into_actions().iter().map(|step| format!("{step:?}")).collect();
            (rule, steps)
        })
        .collect()
}

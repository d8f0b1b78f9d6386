//! Pods with the real keeper in a world of virtual time and seeded faults.
//!
//! A world is made of one number, its seed. In it, two to five pods compete for one to three leases of one store, each
//! through a real [`Lease`](lease_core::Lease) with its real keeper, on one runtime whose time moves only when nothing
//! else does. Statements are late, lost, doubled; pods stand still, crash and are restarted; clocks run fast and slow and
//! step; operators evict. Everything that happens is on record ([`seen`]), and [`invariant`] judges the record.
//!
//! A world played again from its seed is the same to the last poll.
//!
//! Not in it: rows that an operator deletes or frees at once (`evict_now`), after which exclusion rests on the fence by
//! contract; polls of f that block; more than one thread.

use std::fmt;

use lease_core::Mutant;
use lease_core::tenure::TenureMutant;
use tokio::runtime::Builder;

mod batch;
mod body;
mod command;
mod dice;
mod fate;
mod faults;
pub mod invariant;
mod mutants;
mod plan;
mod pod;
pub mod seen;
mod tally;
mod user;
mod wire;
mod work;
mod world;

pub use batch::{Batch, Found};
pub use command::{Args, run};
pub use mutants::{CAUGHT, Hunt, hunt};
pub use tally::Tally;

use dice::Dice;
use fate::Fate;
use plan::Plan;
use seen::History;
use world::World;

/// A rule that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Of the tenure or its keeper, on every pod.
    Tenure(TenureMutant),
    /// Of the store.
    Store(Mutant),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenure(mutant) => write!(f, "{mutant:?}"),
            Self::Store(mutant) => write!(f, "{mutant:?}"),
        }
    }
}

impl Broken {
    /// The mutant of that name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let tenure = TenureMutant::ALL.iter().copied().map(Self::Tenure);
        let store = Mutant::ALL.iter().copied().map(Self::Store);
        tenure.chain(store).find(|broken| broken.to_string() == name)
    }
}

/// Plays the world of a seed to its end.
///
/// # Panics
/// When no runtime can be made, or when a pod's user panics, which is a mistake in the world.
#[must_use]
pub fn play(seed: u64, broken: Option<Broken>) -> History {
    // The keeper's jitter comes from this thread's generator.
    fastrand::seed(seed);
    let mut dice = Dice::of(seed);
    let plan = Plan::draw(broken, &mut dice);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap_or_else(|error| panic!("no runtime: {error}"));
    runtime.block_on(async {
        let world = World::new(plan, &mut dice);
        Fate::new(world, dice).run().await
    })
}

/// The one line that plays a world again.
#[must_use]
pub fn again(seed: u64, broken: Option<Broken>) -> String {
    match broken {
        Some(broken) => format!("cargo xtask sim --seed {seed} --mutant {broken}"),
        None => format!("cargo xtask sim --seed {seed}"),
    }
}

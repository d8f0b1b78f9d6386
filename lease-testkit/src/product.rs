//! Faults by product: every public future, dropped at every await point, while the store answers in every way.
//!
//! A future can only be dropped between two polls. So one that is dropped after its n-th poll, for n = 0, 1, 2 and so on
//! until it ends by itself, has been dropped at each of its await points. Between two polls others go on; so at each
//! point it is dropped at once, a while later, and at the moment at which it would be polled again.
//!
//! After each combination the store answers again, and then nothing may be left of it:
//! - no orphan: the row is released, soon and not by its expiry, and keeps its minimum if and only if the job ran;
//! - the job was dropped once, and was not polled after its future was gone;
//! - no leak: the name can be had again, the keeper knows of nothing, and nothing holds the store or the observer;
//! - no poisoned pool: [`Backend::sound`].
//!
//! A backend says in a few lines what it is, and runs it:
//!
//! ```
//! use std::sync::Arc;
//! use lease_core::{Clock, MemoryRepo};
//! use lease_testkit::product::{Backend, Product, Public, Time};
//!
//! struct Memory(Arc<MemoryRepo>);
//!
//! impl Backend for Memory {
//!     type Repo = MemoryRepo;
//!     fn repo(&self) -> Arc<MemoryRepo> {
//!         self.0.clone()
//!     }
//!     fn eyes(&self) -> &MemoryRepo {
//!         &self.0
//!     }
//!     async fn step_clock(&self, by_us: i64) {
//!         self.0.step_clock(by_us);
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let time = Time::paused();
//! let clock = time.clone();
//! let memory = Memory(Arc::new(MemoryRepo::with_time(move || clock.now())));
//! let report = Product::new(memory, time).run(&[Public::GuardRelease]).await.unwrap();
//! assert!(report.combinations() > 10, "{report}");
//! # }
//! ```

use std::future::Future;
use std::sync::Arc;

use lease_core::tenure::TenureMutant;
use lease_core::{Inspect, LeaseName, Operation, Repo};

mod after;
mod answer;
mod case;
mod layer;
mod own;
mod point;
mod probe;
mod public;
mod report;
mod time;

pub use answer::Answer;
pub use point::{Point, Rest};
pub use public::Public;
pub use report::Report;
pub use time::Time;

/// Fails a combination with a text, unless it is so.
macro_rules! ensure {
    ($is_so:expr, $($text:tt)+) => {
        if !$is_so {
            return Err(format!($($text)+));
        }
    };
}
use ensure;

/// A store on which the product runs.
pub trait Backend {
    /// The store's client.
    type Repo: Repo + Inspect;

    /// The client under test: the same one for all combinations, so that what one of them breaks shows in the next.
    fn repo(&self) -> Arc<Self::Repo>;

    /// A client that nothing is tested on, for looking at rows.
    fn eyes(&self) -> &Self::Repo;

    /// Moves the store's clock: see [`Harness::step_clock`](crate::Harness::step_clock).
    fn step_clock(&self, by_us: i64) -> impl Future<Output = ()>;

    /// Makes every statement that would change this row, or add it, wait until [`unlock`](Self::unlock): by a transaction
    /// of somebody else. Answers whether it did. As provided, it can't.
    fn lock(&self, name: &LeaseName) -> impl Future<Output = bool> {
        let _ = name;
        async { false }
    }

    /// Ends what [`lock`](Self::lock) began.
    fn unlock(&self) -> impl Future<Output = ()> {
        async {}
    }

    /// Says what is wrong with the client under test: a connection that is gone or does not answer, a statement or
    /// transaction that was left behind, a lock. As provided, nothing ever is.
    fn sound(&self) -> impl Future<Output = Result<(), String>> {
        async { Ok(()) }
    }
}

/// How the store answers one operation, from just before the future under test is made.
pub type Met = Option<(Operation, Answer)>;

/// A combination that left something behind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{public:?}, the store's answer being {met:?}, dropped {point:?}: {what}")]
#[non_exhaustive]
pub struct Violation {
    /// Which future.
    pub public: Public,
    /// How the store answered.
    pub met: Met,
    /// Where it was dropped.
    pub point: Point,
    /// What is wrong.
    pub what: String,
}

/// The combinations, on one store.
///
/// It runs inside of a current-thread runtime: with paused time if [`Time::paused`] is what it is given, with real time
/// and I/O if it is [`Time::running`].
pub struct Product<B> {
    backend: B,
    time: Time,
    broken: Option<TenureMutant>,
    answers: Vec<Answer>,
    rests: Vec<Rest>,
    names: std::cell::Cell<u64>,
}

/// More polls than any of the futures needs.
const MOST_POLLS: usize = 80;

impl<B: Backend> Product<B> {
    /// All of it.
    pub fn new(backend: B, time: Time) -> Self {
        Self {
            backend,
            time,
            broken: None,
            answers: Answer::ALL.to_vec(),
            rests: Rest::ALL.to_vec(),
            names: std::cell::Cell::new(0),
        }
    }

    /// With a rule of the tenure broken, to see that it is noticed.
    #[must_use]
    pub fn breaking(mut self, rule: TenureMutant) -> Self {
        self.broken = Some(rule);
        self
    }

    /// With these answers only, beside the right one.
    #[must_use]
    pub fn answers(mut self, answers: &[Answer]) -> Self {
        self.answers = answers.to_vec();
        self
    }

    /// With only these ways to drop a future between two polls; that it is dropped at once is always one of them.
    #[must_use]
    pub fn rests(mut self, rests: &[Rest]) -> Self {
        self.rests = rests.to_vec();
        self
    }

    /// The store.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Runs all combinations of these futures.
    ///
    /// # Errors
    /// The first [`Violation`]. It is one as well if a future never ends, or never meets the answer it was to meet.
    pub async fn run(&self, publics: &[Public]) -> Result<Report, Violation> {
        let mut report = Report::default();
        for public in publics {
            let operations = public.operations().iter();
            let faults = operations.flat_map(|operation| self.answers.iter().map(|answer| Some((*operation, *answer))));
            for met in std::iter::once(None).chain(faults) {
                let polls = self.points(*public, met, &mut report).await?;
                report.ends(public, polls);
            }
        }
        Ok(report)
    }

    /// Runs all combinations of the futures of the store itself, those of `Repo` and of `Inspect`.
    ///
    /// There is nothing behind them that answers in one way or another; they are dropped at each point, and after each
    /// the lease can be had again and the store's answers are right.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub async fn run_own(&self) -> Result<Report, String> {
        own::run(self).await
    }

    /// One future and one answer, at each point. Answers after how many polls it ended by itself.
    async fn points(&self, public: Public, met: Met, report: &mut Report) -> Result<usize, Violation> {
        for polls in 0..MOST_POLLS {
            let rests = if polls == 0 { &[] } else { self.rests.as_slice() };
            let mut ended = false;
            for rest in std::iter::once(&Rest::None).chain(rests) {
                let point = Point { polls, rest: *rest };
                let violation = |what| Violation {
                    public,
                    met,
                    point,
                    what,
                };
                let case = case::Case {
                    public,
                    met,
                    point,
                    name: self.name(),
                };
                let done = Box::pin(case.run(self)).await.map_err(violation)?;
                report.count(&public, done.ended);
                if *rest == Rest::None && done.ended {
                    if met.is_some() && !done.met {
                        return Err(violation("it ended without having met that answer".to_owned()));
                    }
                    ended = true;
                    break;
                }
            }
            if ended {
                return Ok(polls);
            }
        }
        Err(Violation {
            public,
            met,
            point: Point {
                polls: MOST_POLLS,
                rest: Rest::None,
            },
            what: "it never ends".to_owned(),
        })
    }

    /// A name that no other combination has.
    fn name(&self) -> String {
        let next = self.names.get() + 1;
        self.names.set(next);
        format!("product-{next}")
    }
}

//! Faults by product on `MemoryRepo`: every public future, dropped at every await point, by every answer of the store.

use std::cell::Cell;
use std::sync::Arc;

use lease_core::tenure::TenureMutant::{self, *};
use lease_core::{Clock, MemoryRepo};
use lease_testkit::product::{Backend, Product, Public, Time};

struct Memory(Arc<MemoryRepo>);

impl Backend for Memory {
    type Repo = MemoryRepo;

    fn repo(&self) -> Arc<MemoryRepo> {
        self.0.clone()
    }

    fn eyes(&self) -> &MemoryRepo {
        &self.0
    }

    async fn step_clock(&self, by_us: i64) {
        self.0.step_clock(by_us);
    }
}

fn memory(time: &Time) -> Memory {
    let clock = time.clone();
    Memory(Arc::new(MemoryRepo::with_time(move || clock.now())))
}

/// Call it inside a runtime with paused time.
fn product() -> Product<Memory> {
    let time = Time::paused();
    Product::new(memory(&time), time)
}

/// The number of combinations keeps it from testing less than it did.
async fn holds_for(publics: &[Public], least: usize) {
    let report = product()
        .run(publics)
        .await
        .unwrap_or_else(|violation| panic!("{violation}"));
    assert!(report.combinations() >= least, "{report}");
    assert!(report.dropped() > least * 4 / 5, "{report}");
}

#[tokio::test(start_paused = true)]
async fn running_a_job_leaves_nothing_behind() {
    holds_for(&[Public::JobRun], 690).await;
}

#[tokio::test(start_paused = true)]
async fn the_other_forms_of_running_a_job_leave_nothing_behind() {
    holds_for(&[Public::LeaseRun, Public::JobWithLease, Public::LeaseWithLease], 2_070).await;
}

#[tokio::test(start_paused = true)]
async fn taking_a_lease_leaves_nothing_behind() {
    holds_for(&[Public::JobTryAcquire, Public::LeaseTryAcquire], 320).await;
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_lease_leaves_nothing_behind() {
    let free = [Public::JobAcquire, Public::LeaseAcquireForever];
    let taken = [Public::JobAcquireTaken, Public::JobAcquireTakenForever];
    holds_for(&[free, taken].concat(), 1_600).await;
}

#[tokio::test(start_paused = true)]
async fn using_a_guard_leaves_nothing_behind() {
    holds_for(&[Public::GuardRun, Public::GuardRelease], 540).await;
}

#[tokio::test(start_paused = true)]
async fn shutting_down_leaves_nothing_behind() {
    holds_for(&[Public::ShutDown, Public::ShutDownStubborn], 240).await;
}

#[tokio::test(start_paused = true)]
async fn watching_a_lease_leaves_nothing_behind() {
    holds_for(&[Public::HeldCancelled, Public::HeldUntilLost], 320).await;
}

#[tokio::test(start_paused = true)]
async fn jobs_that_are_repeated_leave_nothing_behind() {
    holds_for(&[Public::PeriodicNext, Public::PeriodicRun], 320).await;
}

#[tokio::test(start_paused = true)]
async fn campaigns_leave_nothing_behind() {
    holds_for(&[Public::CampaignNext, Public::CampaignRun], 320).await;
}

#[tokio::test(start_paused = true)]
async fn the_stores_own_futures_leave_nothing_behind() {
    let report = product().run_own().await.unwrap();
    println!("{report}");
    assert_eq!(
        report.combinations(),
        14 * 2 + 4,
        "unpolled and to its end; `freed`, which has none, at each rest"
    );
}

/// What each rule is there for, and what is found when it is broken.
const BROKEN: &[(TenureMutant, Public, &str)] = &[
    (NeverUndoes, Public::JobTryAcquire, "not released after"),
    (UndoesOnce, Public::JobTryAcquire, "not released after"),
    (UndoKeepsTheMinimum, Public::JobTryAcquire, "with a minimum of 0ns"),
    (KeepsAnAbandonedGrant, Public::JobTryAcquire, "not released after"),
    (ReleaseForgetsTheMinimum, Public::GuardRun, "with a minimum of 50s"),
    (ReleasesOnce, Public::GuardRelease, "not released after"),
    (ReusesTheHolder, Public::JobRun, "product/again"),
    (
        ReleasesBeforeTheEnd,
        Public::ShutDownStubborn,
        "it was released while the job ran",
    ),
    (ForgetsTheGrace, Public::ShutDownStubborn, "not released after"),
    (WaitsForEachAnswer, Public::JobRun, ""),
];

#[tokio::test(start_paused = true)]
async fn it_notices_each_rule_that_is_broken() {
    for (rule, public, found) in BROKEN {
        let Err(violation) = product().breaking(*rule).run(&[*public]).await else {
            panic!("{rule:?} is not noticed")
        };
        println!("{rule:?}: {violation}");
        assert!(violation.what.contains(found), "{rule:?}: {violation}");
    }
}

/// A client that is worn out by every hundredth combination.
struct Poisoned(Memory, Cell<usize>);

impl Backend for Poisoned {
    type Repo = MemoryRepo;

    fn repo(&self) -> Arc<MemoryRepo> {
        self.0.repo()
    }

    fn eyes(&self) -> &MemoryRepo {
        self.0.eyes()
    }

    async fn step_clock(&self, by_us: i64) {
        self.0.step_clock(by_us).await;
    }

    async fn sound(&self) -> Result<(), String> {
        self.1.set(self.1.get() + 1);
        if self.1.get() == 100 {
            return Err("a connection went missing".to_owned());
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn it_looks_at_the_client_after_each_combination() {
    let time = Time::paused();
    let product = Product::new(Poisoned(memory(&time), Cell::new(0)), time);
    let violation = product.run(&[Public::JobRun]).await.unwrap_err();
    assert_eq!(violation.what, "a connection went missing");
}

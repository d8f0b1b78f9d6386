//! Faults by product on `MemoryRepo`: every public future, dropped at every await point, by every answer of the store.

use std::sync::Arc;

use lease_core::MemoryRepo;
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

/// Call it inside a runtime with paused time.
fn product() -> Product<Memory> {
    use lease_core::Clock;
    let time = Time::paused();
    let clock = time.clone();
    let memory = Memory(Arc::new(MemoryRepo::with_time(move || clock.now())));
    Product::new(memory, time)
}

async fn holds_for(publics: &[Public], least: usize) {
    let report = product()
        .run(publics)
        .await
        .unwrap_or_else(|violation| panic!("{violation}"));
    println!("{report}");
    assert!(report.combinations() >= least, "{report}");
}

#[tokio::test(start_paused = true)]
async fn running_a_job_leaves_nothing_behind() {
    holds_for(&[Public::JobRun], 400).await;
}

#[tokio::test(start_paused = true)]
async fn the_other_forms_of_running_a_job_leave_nothing_behind() {
    holds_for(&[Public::LeaseRun, Public::JobWithLease, Public::LeaseWithLease], 1_200).await;
}

#[tokio::test(start_paused = true)]
async fn taking_a_lease_leaves_nothing_behind() {
    holds_for(&[Public::JobTryAcquire, Public::LeaseTryAcquire], 200).await;
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_lease_leaves_nothing_behind() {
    let free = [Public::JobAcquire, Public::LeaseAcquireForever];
    let taken = [Public::JobAcquireTaken, Public::JobAcquireTakenForever];
    holds_for(&[free, taken].concat(), 1_000).await;
}

#[tokio::test(start_paused = true)]
async fn using_a_guard_leaves_nothing_behind() {
    holds_for(&[Public::GuardRun, Public::GuardRelease], 200).await;
}

#[tokio::test(start_paused = true)]
async fn shutting_down_leaves_nothing_behind() {
    holds_for(&[Public::ShutDown, Public::ShutDownStubborn], 200).await;
}

#[tokio::test(start_paused = true)]
async fn watching_a_lease_leaves_nothing_behind() {
    holds_for(&[Public::HeldCancelled, Public::HeldUntilLost], 200).await;
}

#[tokio::test(start_paused = true)]
async fn zz_explore() {
    use lease_core::tenure::TenureMutant::*;
    for rule in &[
        NeverUndoes,
        UndoesOnce,
        UndoKeepsTheMinimum,
        ReleaseForgetsTheMinimum,
        KeepsAnAbandonedGrant,
        ReusesTheHolder,
        ReleasesBeforeTheEnd,
        RenewsAfterTheRelease,
        ReleasesOnce,
        ForgetsTheGrace,
        ReleasesTheForsaken,
        WaitsForEachAnswer,
    ] {
        let product = product().breaking(*rule);
        let mut by = Vec::new();
        for public in Public::ALL {
            if let Err(violation) = product.run(&[*public]).await {
                by.push(format!("    {violation}"));
            }
        }
        println!(
            "EXPLORE {rule:?} {}\n{}",
            by.len(),
            by.first().map_or("", |x| &x[..x.len().min(300)])
        );
    }
}

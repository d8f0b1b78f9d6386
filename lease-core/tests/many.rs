//! Many leases in one process: renewed together, and what happens when that fails.

mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use lease_core::{
    Acquire, Claim, Clock, Guard, Lease, LeaseName, MemoryRepo, Moment, Operation, Release, Renew, Repo, RepoError,
    RepoErrorKind, Stop, TokioClock,
};
use tokio::runtime::Handle;
use world::secs;

const SIZE: usize = 100;

/// A store that renews a hundred at a time, counts statements, and fails as it is told.
#[derive(Clone)]
struct Store {
    repo: MemoryRepo,
    clock: TokioClock,
    state: Arc<Mutex<State>>,
}

/// When, and for how many leases.
type Batches = Vec<(Moment, usize)>;
/// When, and which.
type Singles = Vec<(Moment, LeaseName)>;

#[derive(Default)]
struct State {
    batches: Batches,
    singles: Singles,
    away: bool,
    /// How long a batch takes.
    slow: Duration,
    /// Whose row is locked, for batches.
    locked: Option<LeaseName>,
    /// Whether the last answer of a batch is missing.
    forgets: bool,
}

fn error(kind: RepoErrorKind, claim: &Claim) -> RepoError {
    RepoError::new(kind, Operation::Renew)
        .with_lease(&claim.name)
        .never_executed()
}

impl Store {
    fn new() -> Self {
        let clock = TokioClock::new();
        Self {
            repo: MemoryRepo::with_time(move || clock.now()),
            clock,
            state: Arc::default(),
        }
    }

    fn pod(&self) -> Lease {
        Lease::builder(self.clone())
            .clock(self.clock)
            .keeper_on(Handle::current())
            .build()
    }

    async fn sleep(&self, time: Duration) {
        self.clock.sleep_until(self.clock.now() + time).await;
    }

    fn tell(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    /// What was sent since the last look.
    fn sent(&self) -> (Batches, Singles) {
        let mut state = self.state.lock().unwrap();
        (std::mem::take(&mut state.batches), std::mem::take(&mut state.singles))
    }

    fn check(&self, claim: &Claim) -> Result<(), RepoError> {
        if self.state.lock().unwrap().away {
            Err(error(RepoErrorKind::Unavailable, claim))
        } else {
            Ok(())
        }
    }
}

impl Repo for Store {
    async fn acquire(&self, claim: &Claim) -> Result<Acquire, RepoError> {
        self.check(claim)?;
        self.repo.acquire(claim).await
    }

    async fn renew(&self, claim: &Claim) -> Result<Renew, RepoError> {
        self.tell(|state| state.singles.push((self.clock.now(), claim.name.clone())));
        self.check(claim)?;
        self.repo.renew(claim).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        self.check(claim)?;
        self.repo.release(claim).await
    }

    fn batch_size(&self) -> usize {
        SIZE
    }

    async fn renew_all(&self, claims: &[Claim]) -> Vec<Result<Renew, RepoError>> {
        self.tell(|state| state.batches.push((self.clock.now(), claims.len())));
        let (locked, forgets, slow) = {
            let state = self.state.lock().unwrap();
            (state.locked.clone(), state.forgets, state.slow)
        };
        self.sleep(slow).await;
        let mut answers = Vec::new();
        for claim in claims {
            answers.push(match self.check(claim) {
                Err(error) => Err(error),
                Ok(()) if locked.as_ref() == Some(&claim.name) => Err(error(RepoErrorKind::Conflict, claim)),
                Ok(()) => self.repo.renew(claim).await,
            });
        }
        answers.truncate(claims.len() - usize::from(forgets));
        answers
    }
}

/// So many leases, acquired over so long a time.
async fn acquire(store: &Store, pod: &Lease, count: u32, ttl: Duration, over: Duration) -> Vec<Guard> {
    let mut guards = Vec::new();
    for number in 0..count {
        guards.push(pod.try_acquire(format!("job-{number:04}"), ttl).await.unwrap().unwrap());
        store.sleep(over / count).await;
    }
    guards
}

fn all_are_live(guards: &[Guard]) -> bool {
    guards
        .iter()
        .all(|guard| guard.held().is_live() && guard.held().stop().is_none())
}

#[tokio::test(start_paused = true)]
async fn what_was_acquired_at_different_times_is_soon_renewed_at_one() {
    let store = Store::new();
    let guards = acquire(&store, &store.pod(), 1_000, secs(30), secs(4)).await;
    store.sleep(secs(20)).await;
    store.sent();
    store.sleep(secs(600)).await;
    let (batches, singles) = store.sent();
    // Sixty rounds of ten seconds, ten statements each.
    assert!((590..=610).contains(&batches.len()), "{} statements", batches.len());
    assert!(singles.is_empty(), "{} alone", singles.len());
    assert!(batches.iter().all(|(_, size)| *size == SIZE));
    assert!(all_are_live(&guards));
}

#[tokio::test(start_paused = true)]
async fn a_lease_alone_is_renewed_as_ever_and_a_few_are_never_renewed_more_than_twice_as_often() {
    let store = Store::new();
    let pod = store.pod();
    let guards = acquire(&store, &pod, 1, secs(30), secs(1)).await;
    store.sleep(secs(100)).await;
    let (batches, singles) = store.sent();
    assert_eq!((batches.len(), singles.len()), (0, 10));
    drop(guards);
    store.sleep(secs(1)).await;
    let guards = acquire(&store, &pod, 3, secs(30), secs(9)).await;
    store.sent();
    store.sleep(secs(100)).await;
    let (batches, singles) = store.sent();
    let renewals = singles.len() + batches.iter().map(|(_, size)| size).sum::<usize>();
    assert!(
        (30..=60).contains(&renewals),
        "{renewals} renewals of three leases in ten rounds"
    );
    assert!(all_are_live(&guards));
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_skipped_or_forgotten_in_a_batch_is_renewed_singly() {
    let store = Store::new();
    let guards = acquire(&store, &store.pod(), 50, secs(30), secs(1)).await;
    let locked = guards[17].held().name().clone();
    store.tell(|state| state.locked = Some(locked.clone()));
    store.sleep(secs(100)).await;
    let (batches, singles) = store.sent();
    assert!(batches.len() <= 12, "{} statements", batches.len());
    assert!(
        !singles.is_empty() && singles.iter().all(|(_, name)| *name == locked),
        "{singles:?}"
    );
    store.tell(|state| (state.locked, state.forgets) = (None, true));
    store.sleep(secs(100)).await;
    assert!(!store.sent().1.is_empty());
    assert!(all_are_live(&guards));
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_of_a_batch_is_lost_alone() {
    let store = Store::new();
    let guards = acquire(&store, &store.pod(), 50, secs(30), secs(1)).await;
    store.repo.delete_row(guards[17].held().name());
    store.sleep(secs(30)).await;
    for (number, guard) in guards.iter().enumerate() {
        assert_eq!(guard.held().is_live(), number != 17, "{number}");
    }
    assert!(matches!(guards[17].held().stop(), Some(Stop::Lost(_))));
}

/// Batches took no longer than the lease with the least time allows, which was too little for all of them.
#[tokio::test(start_paused = true)]
async fn a_lease_of_a_short_ttl_costs_none_of_the_others() {
    let store = Store::new();
    let pod = store.pod();
    let mut guards = acquire(&store, &pod, 50, secs(30), secs(1)).await;
    guards.push(
        pod.try_acquire("short", Duration::from_millis(400))
            .await
            .unwrap()
            .unwrap(),
    );
    store.tell(|state| state.slow = Duration::from_millis(150));
    store.sleep(secs(120)).await;
    assert!(all_are_live(&guards));
    let (batches, singles) = store.sent();
    assert!(batches.iter().all(|(_, size)| *size == 50), "{batches:?}");
    assert!(
        singles.iter().all(|(_, name)| name.as_str() == "short"),
        "{} alone",
        singles.len()
    );
}

/// A thousand leases, and the store away for half a minute.
#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_ttl_costs_no_lease_and_no_burst_follows() {
    let store = Store::new();
    let guards = acquire(&store, &store.pod(), 1_000, secs(120), secs(10)).await;
    store.sleep(secs(300)).await;
    store.sent();
    store.sleep(secs(120)).await;
    let normal = store.sent().0.len();
    store.tell(|state| state.away = true);
    store.sleep(secs(30)).await;
    store.tell(|state| state.away = false);
    store.sent();
    store.sleep(secs(120)).await;
    let (batches, singles) = store.sent();
    assert!(singles.is_empty(), "{} alone", singles.len());
    assert!(
        batches.len() <= normal * 2,
        "{} statements, {normal} as a rule",
        batches.len()
    );
    assert!(all_are_live(&guards));
}

#[tokio::test(start_paused = true)]
async fn an_outage_longer_than_the_ttl_loses_all_each_told_in_time_and_all_are_taken_again() {
    let store = Store::new();
    let pod = store.pod();
    let guards = acquire(&store, &pod, 1_000, secs(10), secs(1)).await;
    store.tell(|state| state.away = true);
    let told = join_all(guards.into_iter().map(async |guard| {
        let stop = guard.held().cancelled().await;
        assert!(guard.held().is_live(), "told before its deadline");
        assert!(matches!(stop, Stop::Overdue { last_error: Some(_) }), "{stop:?}");
    }));
    let outage = async {
        store.sleep(secs(30)).await;
        store.tell(|state| state.away = false);
    };
    tokio::join!(told, outage);
    store.sleep(secs(20)).await;
    let again = acquire(&store, &pod, 1_000, secs(10), secs(1)).await;
    store.sleep(secs(60)).await;
    assert!(all_are_live(&again));
}

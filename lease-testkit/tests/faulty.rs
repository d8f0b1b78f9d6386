//! `FaultyRepo` does to each call what it was told, and nothing else.

#![expect(clippy::unwrap_used, reason = "helpers of a test are a test too")]

use std::time::Duration;

use futures_util::FutureExt;
use lease_core::{
    Acquire, Claim, Label, LeaseName, MemoryRepo, Operation, Release, Renew, Repo, RepoError, RepoErrorKind,
};
use lease_testkit::{Chances, Fault, FaultyRepo, Harness, ManualClock};

const SECOND: Duration = Duration::from_secs(1);

fn claim(label: &str) -> Claim {
    let holder = Label::new(label).unwrap().new_holder();
    Claim::new(LeaseName::from_static("job"), holder, 60 * SECOND)
}

fn is_held(repo: &FaultyRepo<MemoryRepo>, by: &Claim) -> bool {
    let rows = repo.inner().snapshot();
    let row = rows.get("job").filter(|row| row.expires_at > repo.inner().now_us());
    row.is_some_and(|row| row.holder == by.holder.as_str())
}

/// Without faults it is the store itself: the wrapper passes the suite.
struct Unharmed(FaultyRepo<MemoryRepo>);

impl Harness for Unharmed {
    type Repo = FaultyRepo<MemoryRepo>;

    async fn open() -> Self {
        Self(FaultyRepo::new(MemoryRepo::new()).seeded(1, Chances::NONE))
    }

    async fn client(&self) -> FaultyRepo<MemoryRepo> {
        self.0.clone()
    }

    async fn step_clock(&self, by_us: i64) {
        self.0.inner().step_clock(by_us);
    }
}

lease_testkit::conformance!(Unharmed);

#[tokio::test]
async fn errors_say_whether_the_statement_may_have_run() {
    let repo = FaultyRepo::new(MemoryRepo::new());
    let held = claim("a");
    let faults = [
        (Fault::Refused, RepoErrorKind::Unavailable, false, false),
        (
            Fault::Fails(RepoErrorKind::ReadOnly),
            RepoErrorKind::ReadOnly,
            true,
            false,
        ),
        (Fault::RunsLate, RepoErrorKind::Timeout, true, false),
        (Fault::ReplyLost, RepoErrorKind::Unavailable, true, true),
    ];
    for (fault, kind, perhaps, runs) in faults {
        repo.next_acquire(fault);
        let error: RepoError = repo.acquire(&held).await.unwrap_err();
        assert_eq!((error.kind(), error.may_have_executed()), (kind, perhaps), "{fault:?}");
        assert_eq!(
            (error.operation(), error.lease()),
            (Operation::Acquire, Some(&held.name))
        );
        assert_eq!(is_held(&repo, &held), runs, "{fault:?}");
    }
    assert_eq!(repo.calls(Operation::Acquire), 4);
    assert!(
        matches!(repo.acquire(&held).await, Ok(Acquire::Granted(_))),
        "each fault was for one call"
    );
}

#[tokio::test]
async fn single_faults_come_in_order_then_the_standing_one_until_healed() {
    let repo = FaultyRepo::new(MemoryRepo::new());
    let held = claim("a");
    repo.acquire(&held).await.unwrap();
    repo.on(Operation::Renew, Fault::Fails(RepoErrorKind::Conflict));
    repo.next_renew(Fault::Fails(RepoErrorKind::Timeout));
    repo.next_renew(Fault::ReplyLost);
    let mut kinds = Vec::new();
    for _ in 0..4 {
        kinds.push(repo.renew(&held).await.unwrap_err().kind());
    }
    use RepoErrorKind::{Conflict, Timeout, Unavailable};
    assert_eq!(kinds, [Timeout, Unavailable, Conflict, Conflict]);
    repo.heal();
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    assert_eq!((repo.calls(Operation::Renew), repo.calls(Operation::Release)), (5, 0));
}

#[test]
fn delays_pass_on_the_given_clock() {
    let clock = ManualClock::new();
    let repo = FaultyRepo::with_clock(MemoryRepo::new(), clock.clone());
    let held = claim("a");
    for (fault, runs_at_once) in [(Fault::Delay(SECOND), false), (Fault::DelayReply(SECOND), true)] {
        repo.next_acquire(fault);
        let mut call = Box::pin(repo.acquire(&held));
        assert!(call.as_mut().now_or_never().is_none());
        assert_eq!(is_held(&repo, &held), runs_at_once, "{fault:?}");
        clock.advance(SECOND);
        assert!(
            matches!(call.now_or_never(), Some(Ok(Acquire::Granted(_)))),
            "{fault:?}"
        );
        assert_eq!(repo.release(&held).now_or_never().unwrap().unwrap(), Release::Released);
    }
}

#[test]
fn hung_calls_never_answer() {
    let repo = FaultyRepo::new(MemoryRepo::new());
    let held = claim("a");
    for (fault, runs) in [(Fault::Hang, false), (Fault::Frozen, false), (Fault::HangReply, true)] {
        repo.on(Operation::Acquire, fault);
        let mut call = Box::pin(repo.acquire(&held));
        assert!(call.as_mut().now_or_never().is_none());
        repo.heal();
        assert!(call.now_or_never().is_none(), "healing does not bring back the answer");
        assert_eq!(is_held(&repo, &held), runs, "{fault:?}");
    }
}

/// Case C52: the statement of a client that gave up runs after its undo was answered.
#[tokio::test]
async fn a_late_acquire_holds_the_lease_though_its_undo_found_nothing() {
    let repo = FaultyRepo::new(MemoryRepo::new());
    let given_up = claim("a");
    repo.next_acquire(Fault::RunsLate);
    repo.acquire(&given_up).await.unwrap_err();
    assert_eq!(repo.release(&given_up).await.unwrap(), Release::NotHeld);
    assert_eq!(repo.run_late().await, 1);
    assert!(
        is_held(&repo, &given_up),
        "nobody knows, so the undo has to be repeated"
    );
    assert_eq!(repo.release(&given_up).await.unwrap(), Release::Released);
    assert_eq!(repo.run_late().await, 0, "each runs once");
}

/// Case C44: the undo runs after the next try was granted.
#[tokio::test]
async fn a_late_undo_leaves_the_next_tenure() {
    let repo = FaultyRepo::new(MemoryRepo::new());
    let (burned, next) = (claim("a"), claim("a"));
    repo.next_acquire(Fault::ReplyLost);
    repo.acquire(&burned).await.unwrap_err();
    repo.next_release(Fault::ReplyLost);
    repo.release(&burned).await.unwrap_err();
    repo.next_release(Fault::RunsLate);
    repo.release(&burned).await.unwrap_err();
    repo.acquire(&next).await.unwrap();
    let before = repo.inner().snapshot();
    assert_eq!(repo.run_late().await, 1);
    assert_eq!(repo.inner().snapshot(), before);
}

#[tokio::test]
async fn a_batch_meets_one_fault_and_every_claim_hears_of_it() {
    let repo = FaultyRepo::new(MemoryRepo::new());
    let held = claim("a");
    repo.acquire(&held).await.unwrap();
    let other = Claim::new(LeaseName::from_static("other"), held.holder.clone(), held.ttl);
    repo.next_renew(Fault::Fails(RepoErrorKind::Conflict));
    let answers = repo.renew_all(&[held.clone(), other.clone()]).await;
    let leases: Vec<_> = answers
        .iter()
        .map(|answer| answer.as_ref().unwrap_err().lease().unwrap().as_str())
        .collect();
    assert_eq!(leases, ["job", "other"]);
    let answers = repo.renew_all(&[held, other]).await;
    assert!(matches!(answers[..], [Ok(Renew::Renewed), Ok(Renew::Lost(_))]));
    assert_eq!(repo.calls(Operation::Renew), 2);
}

/// What 300 calls met: an error, an answer, or nothing yet.
fn weather(seed: u64, chances: Chances) -> String {
    let repo = FaultyRepo::with_clock(MemoryRepo::new(), ManualClock::new()).seeded(seed, chances);
    let held = claim("a");
    let mut met = String::new();
    for _ in 0..100 {
        met.push(mark(repo.acquire(&held).now_or_never()));
        met.push(mark(repo.renew(&held).now_or_never()));
        met.push(mark(repo.release(&held).now_or_never()));
    }
    met
}

fn mark<T>(answer: Option<Result<T, RepoError>>) -> char {
    match answer {
        None => 'w',
        Some(Err(_)) => 'e',
        Some(Ok(_)) => '.',
    }
}

#[test]
fn chance_is_the_same_for_the_same_seed() {
    let chances = Chances {
        fails: 10,
        reply_lost: 10,
        delay: 10,
        hang: 5,
        longest_delay: SECOND,
    };
    assert_eq!(weather(7, chances), weather(7, chances));
    assert_ne!(weather(7, chances), weather(8, chances));
    let met = weather(7, chances);
    let share = |mark| met.matches(mark).count() * 100 / met.len();
    assert!((12..=28).contains(&share('e')), "20 % were to fail: {met}");
    assert!((9..=21).contains(&share('w')), "15 % were to wait: {met}");
    assert!(weather(7, Chances::NONE).chars().all(|mark| mark == '.'));
}

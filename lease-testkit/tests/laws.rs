//! The laws hold for `Rows` over any order of operations, waits and steps of the clock.

#![expect(clippy::unwrap_used, reason = "helpers of a test are a test too")]

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use lease_core::{Acquire, Claim, Holder, Label, LeaseName, Mutant, Note, Release, Renew, Row, Rows};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};

/// The unit of all times in microseconds: few values, so that boundaries meet often.
const UNIT: i64 = 1_000;
/// Where the clock starts.
const START: i64 = 1_700_000_000_000_000;

#[derive(Debug, Clone, Copy)]
enum Op {
    Acquire { who: u8, ttl: u8 },
    Renew { who: u8, ttl: u8 },
    Release { who: u8, least: u8 },
    Evict,
    EvictNow,
    Pause { units: u8 },
    Resume,
    Purge { units: u8 },
    Wait { units: u8 },
    Step { units: i8 },
}

fn everyday() -> impl Strategy<Value = Op> {
    let (who, short) = (0..3_u8, 1..6_u8);
    prop_oneof![
        4 => (who.clone(), short.clone()).prop_map(|(who, ttl)| Op::Acquire { who, ttl }),
        3 => (who.clone(), short.clone()).prop_map(|(who, ttl)| Op::Renew { who, ttl }),
        3 => (who, 0..9_u8).prop_map(|(who, least)| Op::Release { who, least }),
        1 => Just(Op::Evict),
        1 => (0..9_u8).prop_map(|units| Op::Pause { units }),
        1 => Just(Op::Resume),
        4 => (0..4_u8).prop_map(|units| Op::Wait { units }),
    ]
}

/// With a clock that only goes on, and rows that are purged.
fn steady() -> impl Strategy<Value = Vec<(u8, Op)>> {
    let op = prop_oneof![12 => everyday(), 1 => (0..9_u8).prop_map(|units| Op::Purge { units })];
    vec((0..2_u8, op), 0..80)
}

/// With a clock that is set back and forth, and leases freed by force.
fn rough() -> impl Strategy<Value = Vec<(u8, Op)>> {
    let step = (-9..9_i8).prop_map(|units| Op::Step { units });
    vec(
        (
            0..2_u8,
            prop_oneof![10 => everyday(), 2 => step, 1 => Just(Op::EvictNow)],
        ),
        0..80,
    )
}

/// Rows, a clock, and what each holder was told.
struct World {
    rows: Rows,
    now: i64,
    /// Until when each holder of a lease may work, as far as it was told.
    works_until: HashMap<(LeaseName, Holder), i64>,
    tokens: HashMap<LeaseName, i64>,
    /// Whether the clock only goes on and nothing is freed by force: then no two work at once.
    steady: bool,
}

impl World {
    fn new(steady: bool, mutant: Option<Mutant>) -> Self {
        let mut rows = Rows::default();
        if let Some(mutant) = mutant {
            rows.break_rule(mutant);
        }
        let (works_until, tokens) = (HashMap::new(), HashMap::new());
        Self {
            rows,
            now: START,
            works_until,
            tokens,
            steady,
        }
    }

    fn run(mut self, ops: &[(u8, Op)]) -> TestCaseResult {
        for (lease, op) in ops {
            let name = LeaseName::new(format!("job-{lease}")).unwrap();
            let before = self.rows.rows().clone();
            self.apply(&name, *op, before.get(name.as_str()))?;
            if !matches!(op, Op::Purge { .. }) {
                let others = |rows: &BTreeMap<String, Row>| {
                    let others = rows.iter().filter(|(key, _)| *key != name.as_str());
                    others.map(|(key, row)| (key.clone(), row.clone())).collect::<Vec<_>>()
                };
                prop_assert_eq!(
                    others(self.rows.rows()),
                    others(&before),
                    "L5: {:?} changed another row",
                    op
                );
            }
        }
        Ok(())
    }

    fn apply(&mut self, name: &LeaseName, op: Op, before: Option<&Row>) -> TestCaseResult {
        let (by, why) = (Label::new("ops").unwrap(), Note::new("a test").unwrap());
        match op {
            Op::Acquire { who, ttl } => self.acquire(&claim(name, who, ttl), before),
            Op::Renew { who, ttl } => self.renew(&claim(name, who, ttl), before),
            Op::Release { who, least } => {
                let least = Duration::from_millis(u64::from(least));
                self.release(&claim(name, who, 1).at_least_for(least), before)
            }
            Op::Evict | Op::EvictNow => {
                self.rows.evict(name, &by, &why, self.now, matches!(op, Op::EvictNow));
                self.token_never_falls(name, before)
            }
            Op::Pause { units } => {
                self.rows.pause(name, i64::from(units) * UNIT, &by, &why, self.now);
                self.token_never_falls(name, before)
            }
            Op::Resume => {
                self.rows.resume(name, self.now);
                self.token_never_falls(name, before)
            }
            Op::Purge { units } => {
                let live = self
                    .rows
                    .rows()
                    .values()
                    .filter(|row| row.expires_at > self.now)
                    .count();
                self.rows.purge(i64::from(units) * UNIT, self.now);
                let left = self
                    .rows
                    .rows()
                    .values()
                    .filter(|row| row.expires_at > self.now)
                    .count();
                prop_assert_eq!(left, live, "a purge leaves what is live");
                Ok(())
            }
            Op::Wait { units } => {
                self.now += i64::from(units) * UNIT;
                Ok(())
            }
            Op::Step { units } => {
                self.now += i64::from(units) * UNIT;
                Ok(())
            }
        }
    }

    fn acquire(&mut self, claim: &Claim, before: Option<&Row>) -> TestCaseResult {
        let now = self.now;
        let retry = before.is_some_and(|row| row.expires_at > now && is_of(row, claim) && row.released_at.is_none());
        let free = before.is_none_or(|row| row.expires_at <= now);
        let answer = self.rows.acquire(claim, now);
        let after = self.rows.rows().get(claim.name.as_str());
        let Acquire::Granted(token) = answer else {
            prop_assert!(
                !retry && !free,
                "L1: a free lease or a retry is granted, not {:?}",
                answer
            );
            prop_assert_eq!(after, before, "L1: who is refused changes nothing");
            return Ok(());
        };
        prop_assert!(
            retry || free,
            "L1: a live lease is not granted to another, over {:?}",
            before
        );
        let (token, after) = (token.get(), after.unwrap());
        let last = self.tokens.insert(claim.name.clone(), token).unwrap_or(0);
        if retry {
            let row = before.unwrap();
            prop_assert_eq!(
                (token, after.acquired_at),
                (row.token, row.acquired_at),
                "L2: a retry keeps both"
            );
            prop_assert!(after.expires_at >= row.expires_at, "L2: a retry never shortens");
        } else {
            prop_assert!(token > last, "L2: {} is granted after {}", token, last);
            prop_assert_eq!(after.acquired_at, now, "L1: a grant starts now");
        }
        prop_assert!(
            after.expires_at >= now + claim.ttl_us(),
            "L1: a grant lasts for its ttl"
        );
        prop_assert_eq!(
            (&after.released_at, &after.note),
            (&None, &None),
            "L1: a grant clears both"
        );
        self.may_work(claim);
        self.nobody_else_works(claim)
    }

    fn renew(&mut self, claim: &Claim, before: Option<&Row>) -> TestCaseResult {
        let now = self.now;
        let held = before.filter(|row| row.expires_at > now && is_of(row, claim) && row.released_at.is_none());
        let answer = self.rows.renew(claim, now);
        let after = self.rows.rows().get(claim.name.as_str());
        let Some(row) = held else {
            prop_assert!(matches!(answer, Renew::Lost(_)), "L3: {:?} is not renewed", before);
            prop_assert_eq!(after, before, "L3: a lost renewal changes nothing");
            return Ok(());
        };
        prop_assert_eq!(&answer, &Renew::Renewed, "L3: its holder renews a live lease");
        let mut extended = row.clone();
        extended.expires_at = row.expires_at.max(now + claim.ttl_us());
        prop_assert_eq!(after, Some(&extended), "L3: to now + ttl, and nothing else");
        self.may_work(claim);
        self.nobody_else_works(claim)
    }

    fn release(&mut self, claim: &Claim, before: Option<&Row>) -> TestCaseResult {
        let now = self.now;
        let held = before.filter(|row| is_of(row, claim) && row.released_at.is_none());
        let answer = self.rows.release(claim, now);
        let after = self.rows.rows().get(claim.name.as_str());
        let Some(row) = held else {
            prop_assert_eq!(
                answer,
                Release::NotHeld,
                "L4: {:?} is not this holder's to release",
                before
            );
            prop_assert_eq!(after, before, "L4: then nothing changes");
            return Ok(());
        };
        prop_assert_eq!(answer, Release::Released, "L4: its holder releases it");
        let least = now.max(row.acquired_at + claim.at_least_for_us());
        let expires_at = if row.expires_at <= now { row.expires_at } else { least };
        let mut released = row.clone();
        (released.released_at, released.expires_at) = (Some(now), expires_at);
        prop_assert_eq!(
            after,
            Some(&released),
            "L4: it frees with its minimum, an expired row is never raised"
        );
        self.works_until.remove(&(claim.name.clone(), claim.holder.clone()));
        Ok(())
    }

    fn may_work(&mut self, claim: &Claim) {
        let told = self
            .works_until
            .entry((claim.name.clone(), claim.holder.clone()))
            .or_default();
        *told = (*told).max(self.now + claim.ttl_us());
    }

    /// The point of it all.
    fn nobody_else_works(&self, claim: &Claim) -> TestCaseResult {
        let other = self
            .works_until
            .iter()
            .find(|((name, holder), until)| *name == claim.name && *holder != claim.holder && **until > self.now);
        prop_assert!(
            !self.steady || other.is_none(),
            "{:?} may work, and so may {:?}",
            claim.holder,
            other
        );
        Ok(())
    }

    fn token_never_falls(&mut self, name: &LeaseName, before: Option<&Row>) -> TestCaseResult {
        let token = |row: Option<&Row>| row.map_or(0, |row| row.token);
        let (old, new) = (token(before), token(self.rows.rows().get(name.as_str())));
        let changed = before.map(|row| &row.holder) != self.rows.rows().get(name.as_str()).map(|row| &row.holder);
        prop_assert!(
            new >= old && (new > old || !changed),
            "L2: another holder has a greater token than {}",
            old
        );
        Ok(())
    }
}

fn claim(name: &LeaseName, who: u8, ttl: u8) -> Claim {
    let holder = Holder::new(format!("pod-{who}/0")).unwrap();
    Claim::new(name.clone(), holder, Duration::from_millis(u64::from(ttl)))
}

fn is_of(row: &Row, claim: &Claim) -> bool {
    row.holder == claim.holder.as_str()
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(1_000)
    }
}

#[test]
fn laws_hold_and_no_two_work_at_once_while_the_clock_is_steady() {
    let run = |ops: Vec<_>| World::new(true, None).run(&ops);
    TestRunner::new(config())
        .run(&steady(), run)
        .unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn laws_hold_and_tokens_grow_over_steps_of_the_clock() {
    let run = |ops: Vec<_>| World::new(false, None).run(&ops);
    TestRunner::new(config())
        .run(&rough(), run)
        .unwrap_or_else(|failure| panic!("{failure}"));
}

/// The properties are worth something only if a broken law breaks them.
#[test]
fn broken_laws_break_the_properties() {
    use Mutant::{
        ExpiredAfterTheLastInstant, ForgetsTheHolder, LiveToTheLastInstant, PauseForgetsTheHolder, PauseKeepsTheToken,
        ReleaseIgnoresTheHolder, ReleaseRaisesAnExpiredRow, RenewAfterRelease, RenewRevives, RetryAfterExpiry,
        RetryAfterRelease, TakesEveryExpiredRow, TokenFollowsTheClockAlone, TokenStays,
    };
    let broken = [
        ExpiredAfterTheLastInstant,
        ForgetsTheHolder,
        LiveToTheLastInstant,
        PauseForgetsTheHolder,
        PauseKeepsTheToken,
        ReleaseIgnoresTheHolder,
        ReleaseRaisesAnExpiredRow,
        RenewAfterRelease,
        RenewRevives,
        RetryAfterExpiry,
        RetryAfterRelease,
        TakesEveryExpiredRow,
        TokenFollowsTheClockAlone,
        TokenStays,
    ];
    for mutant in broken {
        let run = |ops: Vec<_>| World::new(true, Some(mutant)).run(&ops);
        assert!(
            TestRunner::new(config()).run(&steady(), run).is_err(),
            "nothing noticed {mutant:?}"
        );
    }
}

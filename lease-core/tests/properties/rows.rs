//! [`Rows`], the laws as pure functions: every answer is the one that the [`Book`] gives, over any operations of three
//! holders and a clock that moves on and back.

use std::time::Duration;

use lease_core::{Acquire, Claim, Holder, LeaseName, Release, Renew, Row, Rows};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::book::Book;
use crate::run::{check, corpus};

/// Where the clock starts: some day in 2023.
const START: i64 = 1_700_000_000_000_000;
/// The clock stays this far from the ends of what 64 bits can say, 146,000 years to both sides.
const EDGE: i64 = i64::MAX / 2;

#[derive(Debug, Clone, Copy)]
enum Op {
    Acquire(Who, Duration),
    Renew(Who, Duration),
    Release(Who, Duration),
    /// The clock moves by so many microseconds.
    Clock(i64),
}

/// One of three holders.
type Who = u8;

/// Few values, so that what is compared is often equal; and the extremes.
fn span() -> impl Strategy<Value = Duration> {
    let extremes = vec![
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_nanos(1_001),
        Duration::from_micros(i64::MAX.unsigned_abs()),
        Duration::MAX,
    ];
    prop_oneof![12 => (0..8_u64).prop_map(Duration::from_micros), 1 => prop::sample::select(extremes)]
}

fn op() -> impl Strategy<Value = Op> {
    let who = 0..3_u8;
    prop_oneof![
        4 => (who.clone(), span()).prop_map(|(who, ttl)| Op::Acquire(who, ttl)),
        3 => (who.clone(), span()).prop_map(|(who, ttl)| Op::Renew(who, ttl)),
        3 => (who, span()).prop_map(|(who, least)| Op::Release(who, least)),
        4 => (0..5_i64).prop_map(Op::Clock),
        2 => (-9..9_i64).prop_map(Op::Clock),
        1 => prop::sample::select(vec![-START, -2 * START, EDGE, -EDGE]).prop_map(Op::Clock),
    ]
}

/// Runs them on both, and compares each answer. A broken rule of `rows` must show.
fn agrees(mut rows: Rows, ops: &[Op]) -> TestCaseResult {
    let mut book = Book::default();
    let mut now = START;
    let name = LeaseName::from_static("job");
    for op in ops {
        let before = rows.rows().get("job").cloned();
        match *op {
            Op::Acquire(who, ttl) => {
                let claim = claim(&name, who).ttl(ttl);
                let answer = rows.acquire(&claim, now);
                prop_assert_eq!(
                    &answer,
                    &book.acquire(&claim, now),
                    "{:?} over {:?} at {}",
                    op,
                    before,
                    now
                );
                if matches!(answer, Acquire::Busy(_)) {
                    prop_assert_eq!(rows.rows().get("job"), before.as_ref(), "a refusal changes nothing");
                }
            }
            Op::Renew(who, ttl) => {
                let claim = claim(&name, who).ttl(ttl);
                let answer = rows.renew(&claim, now);
                prop_assert_eq!(
                    &answer,
                    &book.renew(&claim, now),
                    "{:?} over {:?} at {}",
                    op,
                    before,
                    now
                );
                let after = rows.rows().get("job");
                if answer == Renew::Renewed {
                    let (old, new) = (before.unwrap(), after.unwrap());
                    prop_assert!(
                        new.expires_at >= old.expires_at && old.expires_at > now,
                        "not shortened, not revived"
                    );
                } else {
                    prop_assert_eq!(after, before.as_ref(), "a loss changes nothing");
                }
            }
            Op::Release(who, least) => {
                let claim = claim(&name, who).at_least_for(least);
                let answer = rows.release(&claim, now);
                prop_assert_eq!(
                    &answer,
                    &book.release(&claim, now),
                    "{:?} over {:?} at {}",
                    op,
                    before,
                    now
                );
                let after = rows.rows().get("job");
                match answer {
                    Release::Released => minimum_is_kept(&claim, &before.unwrap(), after.unwrap(), now)?,
                    Release::NotHeld => prop_assert_eq!(after, before.as_ref(), "what is not held is left alone"),
                }
            }
            Op::Clock(by) => now = now.saturating_add(by).clamp(-EDGE, EDGE),
        }
    }
    let tokens: Vec<i128> = book.tokens().collect();
    prop_assert!(tokens.is_sorted_by(|a, b| a < b), "{:?}", tokens);
    Ok(())
}

/// Of a live row; one that has expired is only marked.
fn minimum_is_kept(claim: &Claim, before: &Row, after: &Row, now: i64) -> TestCaseResult {
    prop_assert_eq!(after.released_at, Some(now));
    prop_assert_eq!((&after.holder, after.token), (&before.holder, before.token));
    if before.expires_at > now {
        let least = before.acquired_at.saturating_add(claim.at_least_for_us());
        prop_assert!(after.expires_at >= least && after.expires_at >= now);
    } else {
        prop_assert_eq!(after.expires_at, before.expires_at);
    }
    Ok(())
}

fn claim(name: &LeaseName, who: Who) -> Claims {
    let holder = Holder::new(format!("pod-{who}/0")).unwrap();
    Claims(Claim::new(name.clone(), holder, Duration::ZERO))
}

/// A claim that still lacks its duration.
struct Claims(Claim);

impl Claims {
    fn ttl(mut self, ttl: Duration) -> Claim {
        self.0.ttl = ttl;
        self.0
    }

    fn at_least_for(self, least: Duration) -> Claim {
        self.0.at_least_for(least)
    }
}

/// A line of the corpus: `a acquire 5`, `b renew max`, `c release 0` in microseconds, or `clock -3`.
fn parsed(line: &String) -> Op {
    let words: Vec<&str> = line.split(' ').collect();
    let time = |text: &str| match text {
        "max" => Duration::MAX,
        us => Duration::from_micros(us.parse().unwrap()),
    };
    let who = |text: &str| text.as_bytes()[0] - b'a';
    match words[..] {
        ["clock", by] => Op::Clock(by.parse().unwrap()),
        [name, "acquire", ttl] => Op::Acquire(who(name), time(ttl)),
        [name, "renew", ttl] => Op::Renew(who(name), time(ttl)),
        [name, "release", least] => Op::Release(who(name), time(least)),
        _ => panic!("no operation: {line}"),
    }
}

#[test]
fn every_answer_is_the_one_of_a_second_reading_of_the_laws() {
    for seed in corpus("tests/properties/corpus/rows") {
        let ops: Vec<Op> = seed.lines.iter().map(parsed).collect();
        agrees(Rows::default(), &ops).unwrap_or_else(|failure| panic!("{}: {failure}", seed.file));
    }
    check(
        "tests/properties/proptest-regressions/rows.txt",
        1_000,
        &vec(op(), 0..60),
        |ops| agrees(Rows::default(), &ops),
    );
}

/// The property is worth something only if a broken law shows.
#[cfg(feature = "mutants")]
#[test]
fn broken_laws_are_noticed_by_the_second_reading() {
    use lease_core::Mutant::*;
    use proptest::test_runner::{Config, TestRunner};
    let broken = [
        ExpiredAfterTheLastInstant,
        ForgetsTheHolder,
        LiveToTheLastInstant,
        ReleaseIgnoresTheHolder,
        ReleaseIgnoresTheMinimum,
        ReleaseLeavesNoMark,
        ReleaseRaisesAnExpiredRow,
        ReleasesTwice,
        RenewAddsUp,
        RenewAfterRelease,
        RenewIgnoresTheHolder,
        RenewRevives,
        RenewShortens,
        RetryAfterExpiry,
        RetryAfterRelease,
        RetryBumpsTheToken,
        RetryShortens,
        TokenFollowsTheClockAlone,
        TokenStays,
        TokensCountFromOne,
    ];
    for mutant in broken {
        let run = |ops: Vec<Op>| {
            let mut rows = Rows::default();
            rows.break_rule(mutant);
            agrees(rows, &ops)
        };
        let config = Config {
            failure_persistence: None,
            max_shrink_iters: 0,
            ..Config::with_cases(2_000)
        };
        assert!(
            TestRunner::new(config).run(&vec(op(), 0..60), run).is_err(),
            "nothing noticed {mutant:?}"
        );
    }
}

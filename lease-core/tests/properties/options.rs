//! [`Options`]: what is accepted fulfils every relation between the times, what is refused says both numbers, and
//! nothing given is changed.

use std::time::Duration;

use lease_core::{InvalidTiming, MAX_TTL, MIN_STEP, MIN_TTL, OnLost, Options, Timing};
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::run::{check, corpus};

/// What a user may give. `None` is the default.
#[derive(Debug, Clone, Copy, Default)]
struct Given {
    ttl: Duration,
    at_least_for: Option<Duration>,
    time_limit: Option<Duration>,
    renew_every: Option<Duration>,
    margin: Option<Duration>,
    drift: Option<Duration>,
    signal_only: bool,
}

impl Given {
    fn options(&self) -> Options {
        let mut options = Options::from(self.ttl);
        if let Some(time) = self.at_least_for {
            options = options.at_least_for(time);
        }
        if let Some(time) = self.time_limit {
            options = options.time_limit(time);
        }
        if let Some(time) = self.renew_every {
            options = options.renew_every(time);
        }
        if let Some(time) = self.margin {
            options = options.margin(time);
        }
        if let Some(time) = self.drift {
            options = options.drift(time);
        }
        if self.signal_only {
            options = options.on_lost(OnLost::SignalOnly);
        }
        options
    }

    /// Whether every relation holds, in whole nanoseconds and with nothing that can overflow.
    fn fits(&self) -> bool {
        let ns = |time: Duration| time.as_nanos();
        let ttl = ns(self.ttl);
        let drift = self.drift.map_or((ttl / 100).max(2_000_000), ns);
        let margin = self.margin.map_or((ttl / 6).max(2 * drift), ns);
        let renew_every = self
            .renew_every
            .map_or((ttl / 3).min(ttl.saturating_sub(margin) / 2), ns);
        ns(MIN_TTL) <= ttl
            && ttl <= ns(MAX_TTL)
            && ns(self.at_least_for.unwrap_or_default()) <= ns(MAX_TTL)
            && ns(MIN_STEP) <= drift
            && 2 * drift <= margin
            && 2 * margin <= ttl
            && ns(MIN_STEP) <= renew_every
            && 2 * renew_every + margin <= ttl
            && self.time_limit.is_none_or(|limit| margin + ns(MIN_STEP) <= ns(limit))
    }
}

/// Any duration, more often one that means something, and its neighbours.
fn duration() -> impl Strategy<Value = Duration> {
    let edges = [
        Duration::ZERO,
        Duration::from_nanos(1),
        MIN_STEP,
        Duration::from_millis(2),
        MIN_TTL,
        MAX_TTL,
        Duration::from_secs(i64::MAX.unsigned_abs() / 1_000_000),
        Duration::MAX,
    ];
    let near = (prop::sample::select(edges.to_vec()), -1..2_i8).prop_map(|(edge, by)| nudged(edge, by));
    prop_oneof![
        3 => near,
        1 => (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
        2 => (1..200_000_u64).prop_map(Duration::from_millis),
    ]
}

fn nudged(time: Duration, by: i8) -> Duration {
    let step = Duration::from_nanos(1);
    match by {
        -1 => time.saturating_sub(step),
        1 => time.saturating_add(step),
        _ => time,
    }
}

/// Any options, more often with times that are a usual fraction of the ttl, and their neighbours.
fn given() -> impl Strategy<Value = Given> {
    let ttl = prop_oneof![1 => duration(), 3 => (100..100_000_u64).prop_map(Duration::from_millis)];
    ttl.prop_flat_map(|ttl| {
        let part = move |parts: &'static [u32]| {
            let fraction = (prop::sample::select(parts), -1..2_i8).prop_map(move |(part, by)| nudged(ttl / part, by));
            weighted(0.6, prop_oneof![1 => duration(), 3 => fraction])
        };
        (
            weighted(0.3, duration()),
            part(&[1, 2, 6, 600]),
            part(&[2, 3, 4, 5, 12]),
            part(&[1, 2, 3, 6, 10]),
            part(&[1, 12, 100, 1_000]),
            any::<bool>(),
        )
            .prop_map(
                move |(at_least_for, time_limit, renew_every, margin, drift, signal_only)| Given {
                    ttl,
                    at_least_for,
                    time_limit,
                    renew_every,
                    margin,
                    drift,
                    signal_only,
                },
            )
    })
}

fn judged(given: &Given) -> TestCaseResult {
    match Timing::new(&given.options()) {
        Ok(timing) => {
            prop_assert!(given.fits(), "accepted");
            kept(given, &timing)?;
            related(&timing)
        }
        Err(refusal) => {
            prop_assert!(!given.fits(), "refused: {}", refusal);
            both_numbers(&refusal)
        }
    }
}

/// Nothing that was given is changed.
fn kept(given: &Given, timing: &Timing) -> TestCaseResult {
    prop_assert_eq!(timing.ttl(), given.ttl);
    prop_assert_eq!(timing.at_least_for(), given.at_least_for.unwrap_or_default());
    prop_assert_eq!(timing.time_limit(), given.time_limit);
    prop_assert_eq!(timing.renew_every(), given.renew_every.unwrap_or(timing.renew_every()));
    prop_assert_eq!(timing.margin(), given.margin.unwrap_or(timing.margin()));
    prop_assert_eq!(timing.drift(), given.drift.unwrap_or(timing.drift()));
    prop_assert_eq!(timing.on_lost() == OnLost::SignalOnly, given.signal_only);
    Ok(())
}

/// What the times must be to each other, so that a tenure can be renewed and ends before its row does.
fn related(timing: &Timing) -> TestCaseResult {
    let (ttl, margin, drift) = (timing.ttl(), timing.margin(), timing.drift());
    let (stop_at, drop_at) = (ttl - margin, ttl - drift);
    prop_assert!(
        stop_at < drop_at && drop_at < ttl,
        "told, then dropped, then free for others"
    );
    prop_assert!(drift * 2 <= margin);
    prop_assert!(
        timing.renew_every() + 2 * timing.limit() <= stop_at,
        "a renewal and one more before f is told"
    );
    prop_assert!(timing.renew_every() > Duration::ZERO && timing.retry_every() > Duration::ZERO);
    prop_assert!(timing.limit() > Duration::ZERO && timing.limit() <= Duration::from_secs(2));
    prop_assert!(timing.undo_every() > Duration::ZERO && timing.undo_every() <= Duration::from_secs(1));
    prop_assert!(
        timing.time_limit().is_none_or(|limit| limit > margin),
        "told before it is dropped"
    );
    Ok(())
}

fn both_numbers(refusal: &InvalidTiming) -> TestCaseResult {
    let (value, bound, too_small) = match refusal {
        InvalidTiming::TooSmall { value, bound, .. } => (value, bound, true),
        InvalidTiming::TooLarge { value, bound, .. } => (value, bound, false),
        other => return Err(TestCaseError::fail(format!("{other:?}"))),
    };
    prop_assert_eq!(value < bound, too_small);
    prop_assert_eq!(value > bound, !too_small);
    let text = refusal.to_string();
    prop_assert!(
        text.contains(&format!("is {value:?},")) && text.contains(&format!(" {bound:?},")),
        "{}",
        text
    );
    Ok(())
}

/// A line of the corpus: an option and nanoseconds, `max` for the longest duration.
fn parsed(lines: &[String]) -> Given {
    let mut given = Given::default();
    for line in lines {
        let (option, value) = line.split_once(' ').unwrap();
        let time = match value {
            "max" => Duration::MAX,
            ns => Duration::from_nanos(ns.replace('_', "").parse().unwrap()),
        };
        match option {
            "ttl" => given.ttl = time,
            "at_least_for" => given.at_least_for = Some(time),
            "time_limit" => given.time_limit = Some(time),
            "renew_every" => given.renew_every = Some(time),
            "margin" => given.margin = Some(time),
            "drift" => given.drift = Some(time),
            other => panic!("no such option: {other}"),
        }
    }
    given
}

#[test]
fn options_are_accepted_iff_every_relation_holds_and_are_never_changed() {
    for seed in corpus("tests/properties/corpus/options") {
        judged(&parsed(&seed.lines)).unwrap_or_else(|failure| panic!("{}: {failure}", seed.file));
    }
    check(
        "tests/properties/proptest-regressions/options.txt",
        4_000,
        &given(),
        |given| judged(&given),
    );
}

/// Otherwise the property above would say little of what is accepted, or of what is refused.
#[test]
fn random_options_are_often_accepted_and_often_refused() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut drawn = || given().new_tree(&mut runner).unwrap().current();
    let accepted = (0..2_000).filter(|_| Timing::new(&drawn().options()).is_ok()).count();
    assert!((200..1_800).contains(&accepted), "{accepted} of 2,000");
}

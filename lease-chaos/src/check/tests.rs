use super::*;
use crate::line::{Answer, Did};

const MS: u64 = 1_000_000;

fn line(pid: u32, token: i64, did: Did) -> Line {
    let name = "job".to_owned();
    Line { pid, name, token, did }
}

/// A tenure from and to, in milliseconds.
fn tenure(pid: u32, token: i64, from: u64, to: u64) -> [Line; 2] {
    [
        line(pid, token, Did::Enter { at: from * MS }),
        line(pid, token, Did::Leave { at: to * MS }),
    ]
}

fn wrote(pid: u32, token: i64, from: u64, answer: Answer) -> Line {
    let (from, to) = (from * MS, (from + 1) * MS);
    line(pid, token, Did::Write { from, to, answer })
}

fn struck(kind: Kind, target: usize, from: u64, until: u64) -> Struck {
    Struck {
        kind,
        target,
        from: from * MS,
        until: until * MS,
        recovered_ms: None,
    }
}

fn seen(pods: [Vec<Line>; 2]) -> Seen {
    Seen {
        pods: pods.into(),
        ..Seen::default()
    }
}

#[test]
fn one_after_the_other_is_no_overlap() {
    let seen = seen([tenure(1, 1, 0, 10).into(), tenure(2, 2, 10, 20).into()]);
    let found = check(&seen);
    assert_eq!((found.tenures, found.overlaps, found.tokens), (2, vec![], vec![]));
}

#[test]
fn two_inside_at_once_are_an_overlap_however_they_end() {
    let mut seen = seen([tenure(1, 1, 0, 10).into(), tenure(2, 2, 9, 20).into()]);
    let found = check(&seen);
    assert_eq!((found.overlaps.len(), &found.overlaps[0].outside), (1, &None));
    // Killed inside: it was there until it was dead.
    seen.pods[0].pop();
    seen.deaths.insert(1, 9 * MS);
    assert_eq!(check(&seen).overlaps, []);
    seen.deaths.insert(1, 15 * MS);
    assert_eq!(check(&seen).overlaps.len(), 1);
    // Nobody killed it, and it never left.
    seen.deaths.clear();
    seen.pods[1] = tenure(2, 2, 90_000, 90_001).into();
    assert_eq!(check(&seen).overlaps.len(), 1);
}

#[test]
fn a_short_tenure_does_not_hide_a_long_one_from_the_next() {
    let long = [tenure(1, 1, 0, 100), tenure(1, 4, 200, 210)].concat();
    let short = [tenure(2, 2, 10, 20), tenure(2, 3, 50, 60)].concat();
    assert_eq!(check(&seen([long, short])).overlaps.len(), 2);
}

#[test]
fn tokens_must_grow() {
    let seen = seen([tenure(1, 5, 0, 10).into(), tenure(2, 5, 10, 20).into()]);
    let found = check(&seen);
    assert_eq!((found.overlaps.len(), found.tokens.len()), (0, 1));
}

#[test]
fn an_overlap_is_outside_of_the_assumptions_only_when_one_of_its_pods_or_all_were_struck() {
    let overlap = |faults: Vec<Struck>| {
        let mut seen = seen([tenure(1, 1, 1_000, 6_000).into(), tenure(2, 2, 5_000, 7_000).into()]);
        seen.struck = faults;
        check(&seen).overlaps[0].outside
    };
    assert_eq!(overlap(vec![]), None);
    assert_eq!(
        overlap(vec![struck(Kind::PodFrozen, 0, 2_000, 5_500)]),
        Some(Kind::PodFrozen)
    );
    assert_eq!(
        overlap(vec![struck(Kind::PodFrozen, 2, 2_000, 5_500)]),
        None,
        "another pod"
    );
    assert_eq!(
        overlap(vec![struck(Kind::PodFrozen, 0, 2_000, 3_000)]),
        None,
        "long over"
    );
    assert_eq!(overlap(vec![struck(Kind::PodFrozen, 0, 5_100, 5_500)]), None, "later");
    assert_eq!(overlap(vec![struck(Kind::PodCutOff, 0, 2_000, 5_500)]), None, "within");
    let clock = |from, until| overlap(vec![struck(Kind::ClockStepsBeyond, 0, from, until)]);
    assert_eq!(clock(1_000, 2_500), Some(Kind::ClockStepsBeyond), "for a ttl more");
    assert_eq!(clock(500, 1_500), None);
}

#[test]
fn a_write_under_a_smaller_token_must_be_refused() {
    let first = tenure(1, 1, 0, 10);
    let late = |answer| {
        let mut lines: Vec<Line> = first.clone().into();
        lines.push(wrote(1, 1, 9, Answer::Accepted));
        lines.push(wrote(1, 1, 25, answer));
        seen([lines, tenure(2, 2, 20, 30).into()])
    };
    let found = check(&late(Answer::Refused)).writes;
    assert_eq!((found.accepted, found.refused, found.stale), (1, 1, 1));
    assert_eq!(found.passed, []);
    let found = check(&late(Answer::Accepted)).writes;
    assert_eq!((found.passed.len(), found.passed[0].outside), (1, None));
    // A grant that was lost with its server is nothing that a fence can know of.
    let mut lost = late(Answer::Accepted);
    lost.struck = vec![struck(Kind::FailoverLosingCommits, 0, 21, 24)];
    assert_eq!(check(&lost).writes.passed[0].outside, Some(Kind::FailoverLosingCommits));
    let mut clock = late(Answer::Accepted);
    clock.struck = vec![struck(Kind::ClockStepsBeyond, 0, 21, 24)];
    assert_eq!(
        check(&clock).writes.passed[0].outside,
        None,
        "the fence holds outside, too"
    );
}

#[test]
fn a_column_knows_a_token_from_its_first_write_on() {
    let mut lines: Vec<Line> = tenure(1, 1, 0, 10).into();
    lines.push(wrote(1, 1, 25, Answer::Accepted));
    lines.push(wrote(1, 1, 29, Answer::Accepted));
    let mut other: Vec<Line> = tenure(2, 2, 20, 30).into();
    other.push(wrote(2, 2, 26, Answer::Accepted));
    let mut seen = seen([lines, other]);
    seen.fence_is_a_column = true;
    let passed = check(&seen).writes.passed;
    assert_eq!(passed.len(), 1, "{passed:?}");
    assert_eq!(passed[0].at, 29 * MS);
}

#[test]
fn the_journal_must_be_in_the_order_of_tokens_whatever_happened() {
    let mut seen = seen([vec![], vec![]]);
    seen.journal.insert("job".to_owned(), vec![1, 1, 2, 5]);
    assert_eq!(check(&seen).writes.passed, []);
    seen.struck = vec![struck(Kind::FailoverLosingCommits, 0, 0, u64::MAX / MS / 2)];
    seen.journal.insert("job".to_owned(), vec![1, 2, 1, 2]);
    let passed = check(&seen).writes.passed;
    assert_eq!((passed.len(), passed[0].outside), (1, None));
}

#[test]
fn a_stuck_row_is_explained_by_a_clock_and_not_by_a_frozen_pod() {
    let stuck = |faults: Vec<Struck>| {
        let mut seen = seen([vec![], vec![]]);
        let row = "job pod-1/x 7 12:00".to_owned();
        let (from, to) = (1_000 * MS, 4_500 * MS);
        seen.stuck = vec![Stuck { row, from, to }];
        seen.struck = faults;
        check(&seen).stuck[0].outside
    };
    assert_eq!(stuck(vec![struck(Kind::PodFrozen, 0, 0, 9_000)]), None);
    assert_eq!(stuck(vec![struck(Kind::ServerKilled, 0, 0, 9_000)]), None);
    let clock = struck(Kind::ClockStepsBeyond, 0, 2_000, 3_000);
    assert_eq!(stuck(vec![clock]), Some(Kind::ClockStepsBeyond));
}

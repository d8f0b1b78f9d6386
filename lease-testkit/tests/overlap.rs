//! The overlap checkers report what they are for.

#![expect(clippy::unwrap_used, reason = "helpers of a test are a test too")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{env, fs, thread};

use lease_core::{Moment, Token};
use lease_testkit::{Overlap, Span, SpanLog, Violation, check};

fn token(value: i64) -> Token {
    Token::new(value).unwrap()
}

#[test]
fn two_threads_inside_at_once_are_reported() {
    let overlap = Overlap::new();
    let first = overlap.enter("job", token(1));
    let other = overlap.clone();
    thread::spawn(move || drop(other.enter("job", token(2))))
        .join()
        .unwrap();
    drop(first);
    let (name, inside, entered) = ("job".to_owned(), token(1), token(2));
    assert_eq!(overlap.finish(), Err(Violation::TwoInside { name, inside, entered }));
}

#[test]
fn one_after_the_other_is_fine_and_names_are_apart() {
    let overlap = Overlap::new();
    drop(overlap.enter("job", token(1)));
    let job = overlap.enter("job", token(2));
    let other = overlap.enter("other", token(1));
    drop((job, other));
    let seen = overlap.finish().unwrap();
    assert_eq!((seen.sections, seen.names), (3, 2));
}

#[test]
fn tokens_that_do_not_grow_are_reported_unless_ignored() {
    let enter = |overlap: Overlap| {
        for value in [7, 7] {
            drop(overlap.enter("job", token(value)));
        }
        overlap.finish()
    };
    let (name, before, entered) = ("job".to_owned(), token(7), token(7));
    assert_eq!(
        enter(Overlap::new()),
        Err(Violation::TokenDidNotGrow { name, before, entered })
    );
    assert!(enter(Overlap::new().ignoring_tokens()).is_ok());
}

#[test]
fn the_first_violation_is_kept_though_all_is_well_later() {
    let overlap = Overlap::new();
    let both = [overlap.enter("job", token(1)), overlap.enter("job", token(2))];
    drop(both);
    drop(overlap.enter("job", token(3)));
    assert!(matches!(overlap.finish(), Err(Violation::TwoInside { .. })));
}

#[test]
fn spans_overlap_when_one_starts_before_another_ends() {
    let at = |ms| Moment::after_start(Duration::from_millis(ms));
    let span = |name: &str, value, enter, leave| Span::new(name, token(value), at(enter), at(leave));
    let fine = [span("a", 1, 0, 10), span("a", 2, 10, 20), span("b", 1, 5, 15)];
    assert_eq!(check(&fine).map(|seen| (seen.sections, seen.names)), Ok((3, 2)));

    // The long one is inside when the third starts, though the second has left.
    let long = [span("a", 3, 30, 40), span("a", 1, 0, 100), span("a", 2, 10, 20)];
    let name = || "a".to_owned();
    let found = Violation::TwoInside {
        name: name(),
        inside: token(1),
        entered: token(2),
    };
    assert_eq!(check(&long), Err(found));

    let back = [span("a", 2, 0, 10), span("a", 1, 20, 30)];
    let found = Violation::TokenDidNotGrow {
        name: name(),
        before: token(2),
        entered: token(1),
    };
    assert_eq!(check(&back), Err(found));
    assert_eq!(check(&[]).map(|seen| seen.sections), Ok(0));
}

/// Stays inside until it is killed or its input ends.
fn child_process(path: impl AsRef<Path>) {
    let log = SpanLog::open(path).unwrap();
    let inside = log
        .enter("job of many", token(env::var("LEASE_TOKEN").unwrap().parse().unwrap()))
        .unwrap();
    while std::io::stdin().read_line(&mut String::new()).unwrap() > 0 {
        inside.still().unwrap();
    }
}

/// The children are this test once more, told by a variable which part they have.
#[test]
fn several_processes_are_checked_by_one_log() {
    if let Some(path) = env::var_os("LEASE_SPAN_LOG") {
        return child_process(path);
    }
    let path = env::temp_dir().join(format!("lease-spans-{}", std::process::id()));
    let child = |value: u32| {
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args(["--exact", "several_processes_are_checked_by_one_log"])
            .env("LEASE_SPAN_LOG", &path);
        command.env("LEASE_TOKEN", value.to_string());
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let entered = |count: usize| {
        while SpanLog::read(&path).map_or(0, |spans| spans.len()) < count {
            thread::yield_now();
        }
    };

    let mut first = child(1);
    entered(1);
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    let mut killed = child(2);
    entered(2);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let third = child(3);
    entered(3);
    let spans = SpanLog::read(&path).unwrap();
    assert_eq!(
        check(&spans).map(|seen| seen.sections),
        Ok(3),
        "one after the other: {spans:?}"
    );
    assert_eq!((spans[2].pid, spans[2].name.as_str()), (third.id(), "job of many"));

    let mut fourth = child(4);
    entered(4);
    for mut process in [third, fourth.stdin.take().map(|_| fourth).unwrap()] {
        drop(process.stdin.take());
        assert!(process.wait().unwrap().success());
    }
    let spans = SpanLog::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(
        matches!(check(&spans), Err(Violation::TwoInside { .. })),
        "both were inside: {spans:?}"
    );
}

#[test]
fn a_damaged_log_is_an_error() {
    let path = env::temp_dir().join(format!("lease-spans-damaged-{}", std::process::id()));
    fs::write(&path, "12 nonsense\n").unwrap();
    let error = SpanLog::read(&path).unwrap_err();
    fs::remove_file(&path).unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}

//! `lease demo`: what it shows, and that nothing of it is left, however it ends.
//!
//! Real clocks and signals are the point. Each run takes a quarter of a minute, and all of them run side by side.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use lease_testkit::servers::Postgres;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use support::running::{PATIENCE, Running};
use support::{lease, said};

/// With a folder of its own for temporary files.
fn demo(folder: &TempDir, more: &[&str]) -> Command {
    let mut command = lease(&[&["demo"], more].concat());
    // What the environment names is not touched.
    command
        .env("LEASE_URL", "sqlite:/no/such/folder/x.db")
        .env("TMPDIR", folder.path());
    command
}

/// Processes whose command line names a folder.
fn processes(folder: &Path) -> Vec<String> {
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let line = fs::read(entry.unwrap().path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(folder.to_str().unwrap())).collect()
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[track_caller]
fn assert_nothing_is_left(folder: &TempDir) {
    assert_eq!(processes(folder.path()), [""; 0]);
    assert_eq!(files(folder.path()), 0, "files");
}

fn assert_outcome(seen: &Value) {
    assert_eq!(seen["overlaps"], 0, "{seen}");
    assert!(seen["refused_writes"].as_u64().unwrap() >= 1, "{seen}");
    let tokens: Vec<i64> = seen["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token.as_i64().unwrap())
        .collect();
    assert!(
        tokens.len() == 4 && tokens.is_sorted_by(|one, next| one < next),
        "{seen}"
    );
    let ttl = seen["ttl_ms"].as_u64().unwrap();
    for figure in ["takeover_after_kill_ms", "takeover_after_pause_ms"] {
        let took = seen[figure].as_u64().unwrap();
        // A busy machine is late.
        assert!(took < ttl + 10_000, "{figure}: {seen}");
    }
    assert!(seen["handover_after_end_ms"].is_u64(), "{seen}");
    let events = seen["events"].as_array().unwrap();
    for event in events {
        let mut keys: Vec<&String> = event.as_object().unwrap().keys().collect();
        keys.sort();
        assert_eq!(keys, ["at_ms", "pod", "token", "what"]);
    }
    for words in [
        "killed with SIGKILL",
        "paused with SIGSTOP",
        "is refused",
        "had its work dropped",
    ] {
        let told = events
            .iter()
            .filter(|event| event["what"].as_str().unwrap().contains(words));
        assert!(told.count() >= 1, "{words}: {seen}");
    }
}

#[test]
fn three_pods_take_over_from_each_other_and_never_work_at_once() {
    let folder = TempDir::new().unwrap();
    let said = said(&mut demo(&folder, &["--json"]));
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    assert_outcome(&serde_json::from_str(&said.out).unwrap());
    assert_nothing_is_left(&folder);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn three_pods_do_the_same_on_a_server_that_is_named() {
    let (folder, database) = (TempDir::new().unwrap(), Postgres::shared().unwrap().database().unwrap());
    let file = folder.path().join("url");
    fs::write(&file, database.url()).unwrap();
    let said = said(&mut demo(&folder, &["--json", "--url-file", file.to_str().unwrap()]));
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    assert_outcome(&serde_json::from_str(&said.out).unwrap());
    assert_eq!(database.sql("SELECT count(*) FROM task_leases").unwrap(), ["1"]);
}

#[test]
fn a_terminal_gets_a_row_for_each_pod_and_its_cursor_back() {
    let folder = TempDir::new().unwrap();
    let mut demo = Running::on_a_terminal(demo(&folder, &[]).env("TERM", "xterm"));
    demo.until("has the lease and works");
    assert!(demo.said.contains("\u{1b}[?25l"), "{:?}", demo.said);
    assert_eq!(demo.ends(), Some(0), "{}", demo.said);
    for text in ["pod-3", "█", "░", "✗", "0 overlaps in "] {
        assert!(demo.said.contains(text), "{text}: {:?}", demo.said);
    }
    let (_, end) = demo.said.rsplit_once("\u{1b}[?25").unwrap();
    assert!(end.starts_with('h'), "the cursor stays away: {:?}", demo.said);
    assert_nothing_is_left(&folder);
}

#[test]
fn a_demo_that_is_interrupted_takes_its_pods_and_files_along() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = TempDir::new().unwrap();
        let mut demo = Running::on_a_terminal(demo(&folder, &[]).env("TERM", "xterm"));
        demo.until("has the lease and works");
        assert_eq!(processes(folder.path()).len(), 3);
        demo.signal(signal);
        assert_eq!(demo.ends(), Some(1), "{}", demo.said);
        assert!(demo.complaint().contains("before it had shown everything"));
        assert!(demo.said.contains("\u{1b}[?25h"), "{:?}", demo.said);
        assert_nothing_is_left(&folder);
    }
}

#[test]
fn a_demo_that_is_killed_leaves_no_pod_behind_though_one_be_paused() {
    let folder = TempDir::new().unwrap();
    let mut demo = Running::piped(&mut demo(&folder, &[]));
    demo.until("is paused with SIGSTOP");
    let first = demo.said.lines().next().unwrap();
    assert!(
        first.starts_with("  0.") && first.ends_with("waits for the lease"),
        "{first}"
    );
    assert!(!demo.said.contains('\u{1b}'), "no terminal: {:?}", demo.said);
    assert_eq!(processes(folder.path()).len(), 2, "one was killed before");
    demo.signal(Signal::SIGKILL);
    assert_eq!(demo.ends(), None);
    // They notice it within milliseconds; a busy machine takes a while.
    let rounds = PATIENCE.as_millis() / 10;
    let is_clear = |_| {
        thread::sleep(Duration::from_millis(10));
        processes(folder.path()).is_empty() && files(folder.path()) == 0
    };
    assert!((0..rounds).any(is_clear), "{:?}", processes(folder.path()));
}

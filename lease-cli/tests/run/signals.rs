//! Signals: passed on, and obeyed while waiting.

use std::os::unix::process::CommandExt;
use std::time::Duration;

use lease_core::{BootClock, Clock};
use rustix::process::Signal;
use serde_json::json;

use crate::job::{Job, mark};
use crate::support::{World, eventually, program, sleeping};

/// C37: a wrapper that ended itself, and left what its command had started.
#[test]
fn c37_sigterm_reaches_what_the_command_started() {
    let world = World::new();
    let mark = mark();
    let mut job = Job::running(&world, &["--", "sh", "-c", &format!("sleep {mark} & wait")], &mark);
    job.signal(Signal::TERM);
    assert_eq!(job.code(), 143);
    assert_eq!(sleeping(&mark), 0);
    assert_eq!(world.json(&["show", "job"]).0["state"], "free");
}

#[test]
fn each_signal_that_ends_or_tells_something_is_passed_on() {
    let world = World::new();
    for (signal, name) in [
        (Signal::INT, "INT"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
        (Signal::ALARM, "ALRM"),
    ] {
        let mark = mark();
        let script = format!("trap 'exit 7' {name}; sleep {mark} & wait");
        let mut job = Job::running(&world, &["--", "sh", "-c", &script], &mark);
        job.signal(signal);
        assert_eq!(job.code(), 7, "{name}: {}", job.said());
        assert_eq!(sleeping(&mark), 0, "what is left of the group ends with the command");
    }
}

/// C38: signals were ignored while the lock was waited for.
#[test]
fn c38_a_signal_ends_the_waiting_at_once_and_nothing_is_acquired() {
    let world = World::new();
    let mark = mark();
    let _holder = Job::running(&world, &["--", "sleep", &mark], &mark);
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut waiting = Job::start(&world, &["--wait", "forever", "-v", "--", "true"]);
        eventually("it waits", || waiting.said().contains("waiting for job").then_some(()));
        let began = BootClock.now();
        waiting.signal(signal);
        assert_eq!(waiting.code(), code);
        let took = BootClock.now().since(began);
        assert!(took < Duration::from_secs(1), "it took {took:?}");
        assert_eq!(waiting.report()["outcome"], json!("interrupted"));
        assert_eq!(waiting.report()["token"], json!(null));
    }
    assert_eq!(sleeping(&mark), 1, "the holder runs on");
}

/// C21: a shutdown that ended the heartbeats before the work.
#[test]
fn c21_a_command_that_takes_its_time_to_end_keeps_the_lease_until_then() {
    let world = World::new();
    let mark = mark();
    // Twice the ttl, from when it is told.
    let script = format!("trap 'sleep 4; date +%s%N > \"$0\"; exit 0' TERM; sleep {mark} & wait");
    let ended = world.path("ended");
    let arguments = ["--ttl", "2s", "--", "sh", "-c", &script, ended.to_str().unwrap()];
    let mut first = Job::running(&world, &arguments, &mark);
    let began = world.path("began");
    let mut second = Job::start(
        &world,
        &[
            "--ttl",
            "2s",
            "--wait",
            "forever",
            "--",
            "sh",
            "-c",
            "date +%s%N > \"$0\"",
            began.to_str().unwrap(),
        ],
    );
    first.signal(Signal::TERM);
    assert_eq!(first.code(), 0, "{}", first.said());
    assert_eq!(second.code(), 0);
    let time = |path| -> i64 { std::fs::read_to_string(path).unwrap().trim().parse().unwrap() };
    let gap = time(began) - time(ended);
    assert!(gap > 0, "they overlap by {gap} ns");
    assert!(gap < 1_000_000_000, "the successor began {gap} ns later");
}

#[test]
fn what_whoever_started_us_wants_ignored_stays_ignored() {
    let world = World::new();
    let mark = mark();
    let script = format!("trap '' HUP; exec \"$0\" run job -- sh -c 'sleep {mark}'");
    let mut command = program("sh");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_lease")])
        .env("LEASE_URL", &world.url)
        .process_group(0);
    let mut nohup = command.spawn().unwrap();
    eventually("the command starts", || (sleeping(&mark) > 0).then_some(()));
    let pid = rustix::process::Pid::from_child(&nohup);
    rustix::process::kill_process(pid, Signal::HUP).unwrap();
    // Were it passed on, the command would die of it within milliseconds.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(sleeping(&mark), 1);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(nohup.wait().unwrap().code(), Some(143));
    assert_eq!(sleeping(&mark), 0);
}

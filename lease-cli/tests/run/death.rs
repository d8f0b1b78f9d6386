//! `lease` itself killed and stopped, and its watchdog: the command outlives neither.

use std::fs;
use std::time::Duration;

use lease_core::{BootClock, Clock};
use rustix::process::{Pid, Signal, kill_process};

use crate::job::{Job, mark};
use crate::support::{World, eventually, sleeping};

/// What ends a job, by its parent.
fn watchdog(job: &Job) -> Pid {
    eventually("there is a watchdog", || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let found = processes.filter_map(|process| {
            let line = fs::read_to_string(process.path().join("cmdline")).ok()?;
            let stat = fs::read_to_string(process.path().join("stat")).ok()?;
            // After the name come the state and the parent (proc_pid_stat(5)).
            let mut words = stat.rsplit_once(") ")?.1.split(' ');
            let (state, parent) = (words.next()?, words.next()?);
            let ours = parent == job.pid().as_raw_nonzero().to_string() && state != "Z";
            (ours && line.contains("_watchdog"))
                .then(|| process.file_name().to_str()?.parse().ok())
                .flatten()
        });
        Pid::from_raw(found.last()?)
    })
}

#[test]
fn a_killed_lease_takes_its_command_along() {
    let world = World::new();
    for script in ["sleep MARK", "trap '' TERM HUP; sleep MARK & sleep MARK"] {
        let mark = mark();
        let job = Job::running(&world, &["--", "sh", "-c", &script.replace("MARK", &mark)], &mark);
        job.signal(Signal::KILL);
        eventually("the command is gone", || (sleeping(&mark) == 0).then_some(()));
        drop(job);
        world.text(&["evict", "job", "--now", "--reason", "the next round", "-q"]);
    }
}

/// From its first moment on, also before the command began: it is killed sooner or later in each round.
#[test]
fn a_lease_that_is_killed_while_it_starts_leaves_no_command() {
    let world = World::new();
    let mark = mark();
    for round in 0..200 {
        let mut job = Job::start(&world, &["--ttl", "100ms", "--wait", "forever", "--", "sleep", &mark]);
        let children = format!("/proc/{0}/task/{0}/children", job.pid().as_raw_nonzero());
        while fs::read_to_string(&children).unwrap().is_empty() && !job.is_over() {}
        let began = BootClock.now();
        while BootClock.now().since(began) < Duration::from_micros(50 * round) {}
        job.signal(Signal::KILL);
        job.status();
    }
    eventually("all commands are gone", || (sleeping(&mark) == 0).then_some(()));
}

/// C22: a process that is paused beyond its time.
#[test]
fn c22_a_stopped_lease_ends_its_command_before_the_next_one_starts() {
    let world = World::new();
    let (beats, began, mark) = (world.path("beats"), world.path("began"), mark());
    let script = format!("sleep {mark} & while :; do date +%s%N >> \"$0\"; sleep 0.01; done");
    let mut first = Job::running(
        &world,
        &["--ttl", "2s", "--", "sh", "-c", &script, beats.to_str().unwrap()],
        &mark,
    );
    eventually("it works", || {
        fs::read_to_string(&beats).ok().filter(|text| text.lines().count() > 3)
    });
    first.signal(Signal::STOP);
    let mut second = Job::start(
        &world,
        &[
            "--wait",
            "forever",
            "--",
            "sh",
            "-c",
            "date +%s%N > \"$0\"",
            began.to_str().unwrap(),
        ],
    );
    assert_eq!(second.code(), 0);
    let beats = fs::read_to_string(&beats).unwrap();
    // The last line may be half a line, which is as good as none.
    let last = beats
        .lines()
        .rfind(|line| line.len() == 19)
        .unwrap()
        .parse::<i64>()
        .unwrap();
    let began = fs::read_to_string(&began).unwrap().trim().parse::<i64>().unwrap();
    assert!(last < began, "the first worked at {last}, the second began at {began}");
    assert_eq!(sleeping(&mark), 0, "its whole group is gone");
    first.signal(Signal::CONT);
    assert_eq!(first.code(), 74, "{}", first.said());
    assert_eq!(first.report()["outcome"], "lost");
    assert!(first.said().contains("job was lost"), "{}", first.said());
}

#[test]
fn a_watchdog_that_is_killed_is_replaced() {
    let world = World::new();
    let mark = mark();
    let job = Job::running(&world, &["--", "sleep", &mark], &mark);
    let first = watchdog(&job);
    kill_process(first, Signal::KILL).unwrap();
    let second = eventually("there is another", || {
        Some(watchdog(&job)).filter(|second| *second != first)
    });
    // All that asks it politely is not for it.
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        kill_process(second, signal).unwrap();
    }
    assert_eq!(watchdog(&job), second);
    assert_eq!(sleeping(&mark), 1, "the command runs on");
    // Until it watches there is none to do it; it says so within milliseconds.
    std::thread::sleep(Duration::from_millis(500));
    job.signal(Signal::KILL);
    eventually("the command is gone", || (sleeping(&mark) == 0).then_some(()));
}

#[test]
fn a_stopped_watchdog_hinders_nothing() {
    let world = World::new();
    let mark = mark();
    let mut job = Job::running(&world, &["--ttl", "1s", "--", "sleep", &mark], &mark);
    let watchdog = watchdog(&job);
    kill_process(watchdog, Signal::STOP).unwrap();
    let began = BootClock.now();
    // Renewals go on, beyond what it knows of.
    eventually("three ttl passed", || {
        (BootClock.now().since(began) > Duration::from_secs(3)).then_some(())
    });
    assert_eq!(sleeping(&mark), 1);
    job.signal(Signal::TERM);
    assert_eq!(job.code(), 143);
    kill_process(watchdog, Signal::CONT).unwrap();
}

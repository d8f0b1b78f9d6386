//! A lease that is lost while the command runs, and commands that are hard to end.

use std::fs;

use lease_testkit::servers::{Postgres, Settings};
use serde_json::json;

use crate::job::{Job, mark};
use crate::support::{World, sleeping};

/// A command that does not end by SIGTERM, and tells that it got one.
fn stubborn(mark: &str) -> String {
    format!("trap 'echo told >> \"$0\"' TERM; while :; do sleep {mark} & wait; done")
}

#[test]
fn an_evicted_command_is_told_then_killed_and_the_exit_code_is_74() {
    let world = World::new();
    let (told, mark) = (world.path("told"), mark());
    let arguments = [
        "--ttl",
        "3s",
        "--kill-after",
        "500ms",
        "--",
        "sh",
        "-c",
        &stubborn(&mark),
        told.to_str().unwrap(),
    ];
    let mut job = Job::running(&world, &arguments, &mark);
    world.text(&["evict", "job", "--reason", "an incident", "--by", "ops", "-q"]);
    assert_eq!(job.code(), 74, "{}", job.said());
    assert_eq!(fs::read_to_string(told).unwrap(), "told\n");
    assert_eq!(sleeping(&mark), 0);
    let report = job.report();
    assert_eq!(
        (&report["outcome"], &report["command"]),
        (&json!("lost"), &json!({ "code": null, "signal": 9 }))
    );
    assert_eq!(
        job.said(),
        "lease: job was lost, and its command ended: the lease was evicted by ops\n"
    );
}

/// A child's own 74 is told apart by the report.
#[test]
fn a_command_that_ends_well_when_it_is_told_lost_its_lease_all_the_same() {
    let world = World::new();
    let mark = mark();
    let script = format!("trap 'exit 0' TERM; sleep {mark} & wait");
    let mut job = Job::running(&world, &["--ttl", "3s", "--", "sh", "-c", &script], &mark);
    world.text(&["evict", "job", "--reason", "an incident", "-q"]);
    assert_eq!(job.code(), 74);
    assert_eq!(job.report()["command"], json!({ "code": 0, "signal": null }));
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_server_that_is_gone_ends_the_command_in_time() {
    let server = Postgres::private(&Settings::default()).unwrap();
    let world = World::on(server.url());
    world.text(&["migrate", "-q"]);
    // Of the ttl a sixth is left for the command from SIGTERM on: enough also where the machine is busy.
    for stop in [Postgres::stop, Postgres::pause] {
        let (told, mark) = (world.path("told"), mark());
        let arguments = [
            "--ttl",
            "9s",
            "--wait",
            "forever",
            "--",
            "sh",
            "-c",
            &stubborn(&mark),
            told.to_str().unwrap(),
        ];
        let mut job = Job::running(&world, &arguments, &mark);
        stop(&server).unwrap();
        // Not until its `sleep` is gone: that one dies of SIGTERM, and has a successor when the command has heard of it.
        assert_eq!(job.code(), 74, "{}", job.said());
        assert_eq!(sleeping(&mark), 0);
        assert_eq!(fs::read_to_string(&told).unwrap(), "told\n", "SIGTERM comes first");
        fs::remove_file(&told).unwrap();
        assert!(job.said().contains("no renewal in time"), "{}", job.said());
        // Whichever it was.
        let _ = server.resume();
        server.stop().unwrap();
        server.start().unwrap();
    }
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    let world = World::new();
    for (script, what) in [
        ("sleep MARK & exit 3", "left behind"),
        ("(sleep MARK &) ; exit 3", "left to whoever adopts it"),
        ("(trap '' TERM; exec sleep MARK) & exit 3", "that does not mind SIGTERM"),
        (
            "exec sh -c 'sleep MARK <&- >&- 2>&- & exit 3' <&- >&- 2>&-",
            "with its streams closed",
        ),
    ] {
        let mark = mark();
        let script = script.replace("MARK", &mark);
        let mut job = Job::start(&world, &["--kill-after", "300ms", "--", "sh", "-c", &script]);
        assert_eq!(job.code(), 3, "{what}: {}", job.said());
        assert_eq!(sleeping(&mark), 0, "{what}");
        assert_eq!(world.json(&["show", "job"]).0["state"], "free", "{what}");
    }
}

#[test]
fn what_a_command_leaves_behind_is_asked_to_end_before_it_is_killed() {
    let world = World::new();
    let (told, mark) = (world.path("told"), mark());
    let left = format!(
        "trap 'echo told > \"{}\"; exit' TERM; sleep {mark} & wait",
        told.display()
    );
    let script = format!("sh -c '{}' & sleep 0.5; exit 3", left.replace('\'', "'\\''"));
    let mut job = Job::start(&world, &["--", "sh", "-c", &script]);
    assert_eq!(job.code(), 3, "{}", job.said());
    assert_eq!(fs::read_to_string(told).unwrap(), "told\n");
    assert_eq!(sleeping(&mark), 0);
}

#[test]
fn a_command_that_closes_its_streams_is_waited_for() {
    let world = World::new();
    let done = world.path("done");
    let script = "exec <&- >&- 2>&-; sleep 1; echo done > \"$0\"";
    let mut job = Job::start(&world, &["--", "sh", "-c", script, done.to_str().unwrap()]);
    assert_eq!(job.code(), 0);
    assert_eq!(fs::read_to_string(done).unwrap(), "done\n");
}

#[test]
fn a_stopped_command_is_ended_too() {
    let world = World::new();
    let mark = mark();
    let script = format!("sleep {mark} & kill -STOP $$");
    let mut job = Job::running(
        &world,
        &["--time-limit", "500ms", "--kill-after", "1h", "--", "sh", "-c", &script],
        &mark,
    );
    assert_eq!(job.code(), 124);
    assert_eq!(sleeping(&mark), 0);
}

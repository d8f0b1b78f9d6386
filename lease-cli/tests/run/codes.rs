//! Every exit code, with its report.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use lease_testkit::servers::Postgres;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::job::{Job, mark};
use crate::support::{World, eventually, lease, said};

fn run(world: &World, arguments: &[&str]) -> (i32, String, Value) {
    let mut job = Job::start(world, arguments);
    let code = job.code();
    (code, job.said(), job.report())
}

/// Everything a report has, so that nothing goes missing unseen.
fn shape(report: &Value) -> Vec<&str> {
    report.as_object().unwrap().keys().map(String::as_str).collect()
}

const SHAPE: [&str; 10] = [
    "cause",
    "command",
    "exit_code",
    "holder",
    "name",
    "outcome",
    "ran_ms",
    "released",
    "token",
    "waited_ms",
];

#[test]
fn the_exit_code_is_the_commands() {
    let world = World::new();
    for (script, code, command) in [
        ("true", 0, json!({ "code": 0, "signal": null })),
        ("exit 74", 74, json!({ "code": 74, "signal": null })),
        ("exit 255", 255, json!({ "code": 255, "signal": null })),
        ("kill -KILL $$", 137, json!({ "code": null, "signal": 9 })),
        // A real-time signal, which has no name.
        ("kill -40 $$", 168, json!({ "code": null, "signal": 40 })),
    ] {
        let (exit, said, report) = run(&world, &["--", "sh", "-c", script]);
        assert_eq!((exit, said.as_str()), (code, ""), "{script}");
        assert_eq!(shape(&report), SHAPE);
        assert_eq!(report["outcome"], "ran", "{script}");
        assert_eq!(report["command"], command, "{script}");
        assert_eq!(report["exit_code"], code, "{script}");
        assert_eq!(report["released"], true, "{script}");
        assert_eq!(report["name"], "job");
        assert_eq!(report["cause"], Value::Null);
    }
}

#[test]
fn the_command_finds_its_lease_in_the_environment() {
    let world = World::new();
    let said = said(&mut world.lease(&[
        "run",
        "job",
        "--",
        "sh",
        "-c",
        "echo $LEASE_NAME $LEASE_HOLDER $LEASE_TOKEN; cat",
    ]));
    let (row, _) = world.json(&["show", "job"]);
    let row = format!("job {} {}\n", row["holder"].as_str().unwrap(), row["token"]);
    assert_eq!((said.out, said.err, said.code), (row, String::new(), 0));
}

#[test]
fn streams_are_passed_through() {
    let world = World::new();
    let input = world.path("input");
    fs::write(&input, "from here").unwrap();
    let mut command = world.lease(&["run", "job", "--", "sh", "-c", "cat; echo to there >&2"]);
    let said = said(command.stdin(fs::File::open(&input).unwrap()));
    assert_eq!((said.out.as_str(), said.err.as_str()), ("from here", "to there\n"));
}

#[test]
fn who_does_not_get_it_exits_75_or_as_told_and_is_silent() {
    let world = World::new();
    let mark = mark();
    let mut holder = Job::running(&world, &["--", "sleep", &mark], &mark);
    let (code, said, report) = run(&world, &["--", "true"]);
    assert_eq!((code, said.as_str()), (75, ""));
    assert_eq!(shape(&report), SHAPE);
    assert_eq!(
        (&report["outcome"], &report["token"], &report["command"]),
        (&json!("not_acquired"), &Value::Null, &Value::Null)
    );
    assert!(
        report["cause"].as_str().unwrap().starts_with("job is held by "),
        "{report}"
    );
    assert_eq!(run(&world, &["-E", "0", "--", "true"]).0, 0);
    let (code, said, _) = run(&world, &["-v", "--", "true"]);
    assert_eq!(code, 75);
    assert!(
        said.contains("lease: job is held by ") && said.contains("unless it is renewed"),
        "{said}"
    );
    let (code, _, report) = run(&world, &["--wait", "300ms", "--", "true"]);
    assert_eq!(code, 75);
    assert!(report["waited_ms"].as_u64().unwrap() >= 300, "{report}");
    holder.signal(Signal::TERM);
    assert_eq!(holder.code(), 143);
}

#[test]
fn who_waits_gets_it_when_it_is_free() {
    let world = World::new();
    let mark = mark();
    let holder = Job::running(&world, &["--", "sleep", &mark], &mark);
    let mut waiting = Job::start(&world, &["--wait", "forever", "-v", "--", "true"]);
    eventually("it waits", || waiting.said().contains("waiting for job").then_some(()));
    holder.signal(Signal::TERM);
    assert_eq!(waiting.code(), 0, "{}", waiting.said());
    for word in ["acquired", "ended with code 0", "released"] {
        assert!(waiting.said().contains(word), "-v tells: {}", waiting.said());
    }
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_124() {
    let world = World::new();
    let mark = mark();
    let (code, said, report) = run(&world, &["--time-limit", "300ms", "--", "sleep", &mark]);
    assert_eq!(
        (code, said.as_str()),
        (124, "lease: job had its 300ms, and its command was ended\n")
    );
    assert_eq!(
        (&report["outcome"], &report["command"]["signal"]),
        (&json!("time_limit"), &json!(15))
    );
    // One that does not mind SIGTERM, and one that says it did well.
    let stubborn = format!("trap '' TERM; sleep {mark}; sleep {mark}");
    let (code, _, report) = run(
        &world,
        &[
            "--time-limit",
            "300ms",
            "--kill-after",
            "300ms",
            "--",
            "sh",
            "-c",
            &stubborn,
        ],
    );
    assert_eq!((code, &report["command"]["signal"]), (124, &json!(9)));
    let (code, ..) = run(
        &world,
        &[
            "--time-limit",
            "300ms",
            "--",
            "sh",
            "-c",
            "trap 'exit 0' TERM; sleep 30 & wait",
        ],
    );
    assert_eq!(code, 124);
}

#[test]
fn a_command_that_is_not_there_takes_no_lease() {
    let world = World::new();
    let no_program = world.path("no program");
    fs::write(&no_program, "").unwrap();
    for (command, code, why) in [
        ("no-such-command", 127, "No such file"),
        ("/no/such/command", 127, "No such file"),
        (no_program.to_str().unwrap(), 126, "Permission denied"),
    ] {
        let (exit, said, report) = run(&world, &["--", command]);
        assert_eq!(exit, code, "{said}");
        assert!(said.contains(command) && said.contains(why), "{said}");
        assert_eq!(
            (&report["outcome"], &report["exit_code"]),
            (&json!("failed"), &json!(code))
        );
    }
    assert_eq!(world.json(&["list"]).0, json!([]));
    // What only the kernel knows is found out when the lease is held.
    let script = world.path("script");
    fs::write(&script, "#!/etc/passwd\n").unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let (exit, said, _) = run(&world, &["--", script.to_str().unwrap()]);
    assert_eq!(exit, 126, "{said}");
    assert!(said.contains("Permission denied"), "{said}");
    assert_eq!(world.json(&["show", "job"]).0["state"], "free");
}

#[test]
fn at_least_for_keeps_the_lease_though_the_command_is_done() {
    let world = World::new();
    assert_eq!(run(&world, &["--at-least-for", "1h", "--", "true"]).0, 0);
    assert_eq!(world.json(&["show", "job"]).0["state"], "released");
    assert_eq!(run(&world, &["--", "true"]).0, 75);
}

#[test]
fn usage_errors_exit_64_and_start_nothing() {
    let world = World::new();
    for (arguments, hint) in [
        (&["run", "job"][..], "COMMAND"),
        (&["run", "--", "true"], "NAME"),
        (&["run", "job", "true"], "the command comes after `--`"),
        (&["run", "job", "--ttl", "1ms", "--", "true"], "ttl"),
        (&["run", "job", "--ttl", "soon", "--", "true"], "write it like 90s"),
        (&["run", "job", "--wait", "never", "--", "true"], "write it like 90s"),
        (&["run", "job", "-E", "256", "--", "true"], "256"),
        (&["run", "job", "--json", "--", "true"], "--report"),
        (&["run", "job", "-q", "-v", "--", "true"], "--verbose"),
        (&["run", " job", "--", "true"], "white space"),
    ] {
        let said = world.says(arguments);
        assert_eq!(said.code, 64, "{arguments:?}: {}", said.err);
        assert!(said.err.contains(hint), "{arguments:?}: {}", said.err);
    }
    assert_eq!(world.json(&["list"]).0, json!([]));
}

#[test]
fn without_a_database_it_exits_78_and_says_that_there_is_no_default() {
    let nothing = said(&mut lease(&["run", "job", "--", "true"]));
    assert_eq!(nothing.code, 78);
    assert!(nothing.err.contains("There is no default"), "{}", nothing.err);
    let folder = World::new();
    let report = format!("{}/no/such/report", folder.folder.path().display());
    let said = folder.says(&["run", "job", "--report", &report, "--", "true"]);
    assert_eq!(said.code, 78, "{}", said.err);
    assert!(said.err.contains(&report), "{}", said.err);
}

#[test]
fn a_database_that_can_not_be_reached_exits_69_after_the_wait() {
    // Nobody listens at the discard port.
    let world = World::on("postgres://u:hunter2@127.0.0.1:9/db");
    let (code, said, report) = run(&world, &["--", "true"]);
    assert_eq!((code, &report["outcome"]), (69, &json!("failed")), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let (code, said, report) = run(&world, &["--wait", "700ms", "--", "true"]);
    assert_eq!(code, 69, "{said}");
    assert!(report["waited_ms"].as_u64().unwrap() >= 700, "{report}");
    assert!(!format!("{said}{report}").contains("hunter2"), "{said} {report}");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_server_without_the_table_exits_78_and_with_it_runs() {
    let database = Postgres::shared().unwrap().database().unwrap();
    let world = World::on(database.url());
    let (code, said, _) = run(&world, &["--", "true"]);
    assert_eq!(code, 78, "{said}");
    assert!(said.contains("run migrate"), "{said}");
    world.text(&["migrate", "-q"]);
    let (code, said, report) = run(&world, &["--", "true"]);
    assert_eq!((code, &report["released"]), (0, &json!(true)), "{said}");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn who_waits_for_a_server_gets_the_lease_when_it_is_back() {
    let server = Postgres::private(&lease_testkit::servers::Settings::default()).unwrap();
    let world = World::on(server.url());
    world.text(&["migrate", "-q"]);
    server.stop().unwrap();
    let mut waiting = Job::start(&world, &["--wait", "forever", "-v", "--", "true"]);
    eventually("it waits", || {
        waiting.said().contains("waiting for job: ").then_some(())
    });
    assert!(!waiting.is_over());
    server.start().unwrap();
    assert_eq!(waiting.code(), 0, "{}", waiting.said());
    assert!(Duration::from_millis(waiting.report()["waited_ms"].as_u64().unwrap()) > Duration::ZERO);
}

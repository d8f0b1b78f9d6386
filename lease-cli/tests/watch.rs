//! `lease watch`: lines for pipes, a table on a terminal, and a database that goes away meanwhile.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod support;

use std::fs;
use std::process::Command;

use lease_testkit::servers::{Postgres, Settings};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use support::running::Running;
use support::{World, lease, pause, said};

fn watch(world: &World, more: &[&str]) -> Command {
    let mut command = lease(&[&["watch", "--every", "100ms"], more].concat());
    command.env("LEASE_URL", &world.url);
    command
}

#[test]
fn each_change_is_a_line_until_it_is_told_to_end() {
    let world = World::new();
    world.text(&pause("job"));
    let mut watch = Running::piped(&mut watch(&world, &[]));
    let first = watch.line();
    let token = world.json(&["show", "job"]).0["token"].to_string();
    assert_eq!(first, format!("job paused pause/ops {token}"));
    world.text(&pause("other"));
    assert!(watch.line().starts_with("other paused pause/ops "));
    world.text(&["evict", "job", "--reason", "x", "--by", "eve"]);
    assert!(watch.line().starts_with("job evicted evict/eve "));
    world.text(&["resume", "other"]);
    assert!(watch.line().starts_with("other free pause/ops "));
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.ends(), Some(0));
    assert_eq!(watch.said.lines().count(), 4, "{}", watch.said);
}

#[test]
fn a_database_that_goes_away_is_told_and_watching_goes_on() {
    let world = World::new();
    world.text(&pause("job"));
    let mut watch = Running::piped(&mut watch(&world, &["job", "gone"]));
    assert!(watch.line().starts_with("job paused "));
    let aside = world.folder.path().with_extension("aside");
    fs::rename(world.folder.path(), &aside).unwrap();
    let told = watch.complaint();
    assert!(
        told.starts_with("lease: unreachable for ") && told.contains("there is no folder"),
        "{told}"
    );
    fs::rename(&aside, world.folder.path()).unwrap();
    let told = watch.complaint();
    assert!(told.starts_with("lease: reachable again after "), "{told}");
    world.text(&pause("not-watched"));
    world.text(&["resume", "job"]);
    assert!(watch.line().starts_with("job free "));
    watch.signal(Signal::SIGINT);
    assert_eq!(watch.ends(), Some(0));
}

#[test]
fn programs_read_an_object_a_line() {
    let world = World::new();
    world.text(&pause("job"));
    let mut watch = Running::piped(&mut watch(&world, &["--json"]));
    let mut event = || -> Value { serde_json::from_str(&watch.line()).unwrap() };
    let mut first = event();
    let mut shown = world.json(&["show", "job"]).0;
    for row in [&mut first["lease"], &mut shown] {
        assert!(row["read_at"].take().is_string());
    }
    assert_eq!(first, json!({ "event": "lease", "lease": shown }));
    // Nothing but a folder without rights or a file that is gone is out of a file's reach.
    let path = world.folder.path().join("leases.db");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let away = event();
    assert_eq!(away["event"], "unreachable", "{away}");
    assert!(away["since"].as_str().unwrap().ends_with('Z'), "{away}");
    assert!(away["error"].as_str().unwrap().contains("is no file"), "{away}");
    fs::remove_dir(&path).unwrap();
    // Until somebody makes the table, there is none.
    let mut later = event();
    while later["event"] == "unreachable" {
        world.text(&["list"]);
        later = event();
    }
    assert_eq!(later["event"], "reachable", "{later}");
    assert!(later["after_ms"].is_u64(), "{later}");
    assert_eq!(event(), json!({ "event": "gone", "name": "job" }));
}

#[test]
fn it_ends_when_nobody_reads_it_any_more() {
    let world = World::new();
    world.text(&pause("job"));
    let mut watch = Running::piped(&mut watch(&world, &[]));
    watch.line();
    watch.shut();
    // Who reads the pipe for us still takes a line, and only a change is a reason to write the next.
    let changes = (0..1_000).take_while(|n| {
        world.text(&pause(&format!("job-{n}")));
        watch.has_ended().is_none()
    });
    assert!(changes.count() < 1_000, "it writes to nobody");
    assert_eq!(watch.ends(), Some(0));
}

#[test]
fn a_terminal_shows_a_table_and_is_given_back() {
    let world = World::new();
    world.text(&pause("job"));
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut watch = Running::on_a_terminal(watch(&world, &[]).env("TERM", "xterm"));
        watch.until("job");
        assert!(
            watch.said.contains("\u{1b}[?1049h") && watch.said.contains("\u{1b}[?25l"),
            "{:?}",
            watch.said
        );
        watch.until("expires in 59m");
        assert!(
            watch.said.contains("NAME") && watch.said.contains("until Ctrl-C"),
            "{:?}",
            watch.said
        );
        assert!(watch.said.contains("\u{1b}[38;5;"), "in colours: {:?}", watch.said);
        watch.signal(signal);
        assert_eq!(watch.ends(), Some(0));
        let end = watch.said.trim_end();
        assert!(end.ends_with("\u{1b}[?25h\u{1b}[?1049l"), "{:?}", watch.said);
    }
    let mut plain = watch(&world, &[]);
    let mut watch = Running::on_a_terminal(plain.env("TERM", "xterm").env("NO_COLOR", "1"));
    watch.until("expires in");
    assert!(!watch.said.contains("\u{1b}[38;5;"), "{:?}", watch.said);
}

#[test]
fn a_terminal_shows_since_when_the_database_is_away() {
    let world = World::new();
    world.text(&pause("job"));
    let mut watch = Running::on_a_terminal(watch(&world, &[]).env("TERM", "xterm"));
    watch.until("expires in");
    let aside = world.folder.path().with_extension("aside");
    fs::rename(world.folder.path(), &aside).unwrap();
    watch.until("unreachable for ");
    watch.until("unreachable for 1s");
    fs::rename(&aside, world.folder.path()).unwrap();
    watch.until("until Ctrl-C");
}

#[test]
fn what_can_not_begin_is_an_error() {
    let every = said(&mut lease(&["watch", "--every", "10ms"]));
    assert_eq!(every.code, 64, "{}", every.err);
    assert!(every.err.contains("at least 100ms"), "{}", every.err);
    for (url, code) in [("postgres://u@127.0.0.1:9/db", 69), ("sqlite:/no/such/folder/x.db", 78)] {
        let said = said(lease(&["watch"]).env("LEASE_URL", url));
        assert_eq!((said.code, said.out.as_str()), (code, ""), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_server_that_is_away_for_a_while_is_found_again() {
    let server = Postgres::private(&Settings::default()).unwrap();
    let database = server.database().unwrap();
    let world = World::on(database.url());
    world.text(&["migrate"]);
    world.text(&pause("job"));
    let mut watch = Running::piped(&mut watch(&world, &[]));
    assert!(watch.line().starts_with("job paused "));
    server.stop().unwrap();
    let told = watch.complaint();
    assert!(told.starts_with("lease: unreachable for "), "{told}");
    server.start().unwrap();
    while !watch.complaint().starts_with("lease: reachable again") {}
    world.text(&["resume", "job"]);
    assert!(watch.line().starts_with("job free "));
}

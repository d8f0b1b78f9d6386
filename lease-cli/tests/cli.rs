//! The real binary, as its users call it: what it prints, its JSON, its exit codes.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::fs;
use std::path::Path;
use std::process::Command;

use lease_testkit::servers::{Dialect, Mysql, Postgres};
use serde_json::{Value, json};
use tempfile::TempDir;

mod support;
use support::{World, lease, pause, said};

/// On any engine.
fn operators_see_and_take_leases(world: &World) {
    assert_eq!(world.text(&["list"]), "no leases\n");
    assert_eq!(world.json(&["list"]), (json!([]), 0));
    assert_eq!(world.json(&["show", "job"]), (Value::Null, 1));
    assert_eq!(
        world.json(&["evict", "job", "--reason", "x"]),
        (json!({ "evicted": false }), 1)
    );
    assert_eq!(world.json(&["resume", "job"]), (json!({ "resumed": false }), 1));

    let (paused, code) = world.json(&pause("job"));
    assert_eq!((&paused["paused"], code), (&json!(true), 0));
    assert!(
        (3_500_000..=3_600_000).contains(&paused["free_in_ms"].as_u64().unwrap()),
        "{paused}"
    );
    let text = world.text(&["list"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("NAME"), "{text}");
    for part in ["job", "paused", "expires in 59m", "pause/ops", "a disk is full"] {
        assert!(lines[1].contains(part), "{text}");
    }
    let (rows, _) = world.json(&["list"]);
    let (row, code) = world.json(&["show", "job"]);
    assert_eq!(code, 0);
    let keys = [
        "acquired_at",
        "expires_at",
        "holder",
        "name",
        "note",
        "read_at",
        "released_at",
        "state",
        "token",
    ];
    for row in [&rows[0], &row] {
        let mut found: Vec<&String> = row.as_object().unwrap().keys().collect();
        found.sort();
        assert_eq!(found, keys);
        assert_eq!(row["name"], "job");
        assert_eq!(row["state"], "paused");
        assert_eq!(row["note"], "a disk is full");
        assert_eq!(row["released_at"], Value::Null);
        assert!(row["expires_at"].as_str().unwrap().ends_with('Z'), "{row}");
        assert!(row["token"].as_i64().unwrap() > 0, "{row}");
    }
    assert!(world.text(&["show", "job"]).contains("acquired"));

    let evict = ["evict", "job", "--reason", "no more", "--by", "eve"];
    let (evicted, code) = world.json(&evict);
    assert_eq!((&evicted["evicted"], code), (&json!(true), 0));
    assert!(evicted["free_in_ms"].as_u64().unwrap() > 3_000_000, "{evicted}");
    assert_eq!(world.json(&["show", "job"]).0["holder"], "evict/eve");
    assert_eq!(world.json(&["show", "job"]).0["state"], "evicted");
    let now = [&evict[..], &["--now"]].concat();
    assert_eq!(world.json(&now), (json!({ "evicted": true, "free_in_ms": 0 }), 0));
    assert_eq!(world.json(&["show", "job"]).0["state"], "free");

    world.text(&pause("job"));
    assert_eq!(
        world.json(&["resume", "job"]),
        (json!({ "resumed": true, "free_in_ms": 0 }), 0)
    );
    assert_eq!(
        world.json(&["purge", "--older-than", "0s"]),
        (json!({ "purged": 0 }), 0)
    );
    assert_eq!(
        world.json(&["purge", "--older-than", "30d"]),
        (json!({ "purged": 0 }), 0)
    );
}

#[test]
fn operators_see_and_take_leases_in_a_file() {
    operators_see_and_take_leases(&World::new());
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn operators_see_and_take_leases_on_a_server() {
    let database = Postgres::shared().unwrap().database().unwrap();
    let world = World::on(database.url());
    let said = world.says(&["list"]);
    assert_eq!(said.code, 78, "{}", said.err);
    assert!(said.err.contains("run migrate"), "{}", said.err);
    assert_eq!(world.json(&["migrate"]), (json!({ "migrated": true }), 0));
    operators_see_and_take_leases(&world);
}

#[test]
#[ignore = "needs MariaDB: cargo xtask test"]
fn operators_see_and_take_leases_on_mariadb() {
    let database = Mysql::shared(Dialect::MariaDb).unwrap().database().unwrap();
    let world = World::on(database.url());
    let said = world.says(&["list"]);
    assert_eq!(said.code, 78, "{}", said.err);
    assert!(said.err.contains("run migrate"), "{}", said.err);
    let (found, code) = world.json(&["doctor"]);
    let mut found = found.as_array().unwrap().iter();
    let schema = found.find(|line| line["check"] == "schema").unwrap();
    assert_eq!((&schema["level"], code), (&json!("error"), 78), "{schema}");
    assert_eq!(world.json(&["migrate"]), (json!({ "migrated": true }), 0));
    assert_eq!(world.json(&["doctor"]).1, 0);
    operators_see_and_take_leases(&world);
    let ran = world.says(&["run", "another", "--", "sh", "-c", "echo $LEASE_NAME"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "another\n"), "{}", ran.err);
}

#[test]
fn people_are_told_what_was_done() {
    let world = World::new();
    assert!(world.text(&pause("job")).starts_with("job is paused for "));
    assert_eq!(world.text(&["resume", "job"]), "job is free\n");
    let said = world.says(&["resume", "job"]);
    assert_eq!((said.code, said.err.as_str()), (1, "lease: job is not paused\n"));
    assert_eq!(said.out, "", "what went wrong is no output");
    assert_eq!(world.text(&["purge", "--older-than", "1h"]), "0 deleted\n");
    assert_eq!(world.text(&["migrate"]), "the table is there\n");
    assert_eq!(world.text(&["list", "--quiet"]), "");
}

#[test]
fn an_operator_who_gives_no_name_is_user_at_host() {
    let world = World::new();
    world.text(&["pause", "job", "--for", "1m", "--reason", "x"]);
    let (row, _) = world.json(&["show", "job"]);
    assert!(row["holder"].as_str().unwrap().starts_with("pause/ann@"), "{row}");
}

#[test]
fn usage_errors_exit_64_and_say_what_to_write() {
    for (arguments, hint) in [
        (
            &["pause", "job", "--for", "soon", "--reason", "x"][..],
            "write it like 90s",
        ),
        (&["pause", "job", "--for", "1h"], "--reason"),
        (&["show", ""], "must not be empty"),
        (&["show", "a\u{7}b"], "control character"),
        (&["evict", "job", "--reason", "x", "--by", "a/b"], "slash"),
        (&["frobnicate"], "frobnicate"),
        (&["list", "--url", "sqlite:x", "--local"], "--local"),
    ] {
        let said = said(&mut lease(arguments));
        assert_eq!(said.code, 64, "{arguments:?}: {}", said.err);
        assert!(said.err.contains(hint), "{arguments:?}: {}", said.err);
    }
    assert_eq!(said(&mut lease(&["--help"])).code, 0);
    assert_eq!(said(&mut lease(&["--version"])).code, 0);
}

#[test]
fn a_database_that_is_not_named_or_can_not_be_one_exits_78() {
    let nothing = said(&mut lease(&["list"]));
    assert_eq!(nothing.code, 78);
    assert!(nothing.err.contains("LEASE_URL_FILE"), "{}", nothing.err);
    assert_eq!(nothing.err.lines().count(), 1, "one line");
    for (url, why) in [
        ("oracle://u:hunter2@h/db", "begins with none of"),
        ("hunter2", "begins with none of"),
        ("sqlite:/no/such/folder/x.db", "there is no folder"),
        ("postgres://u:hunter2@h:port/db", "`port`"),
    ] {
        let said = said(lease(&["list"]).env("LEASE_URL", url));
        assert_eq!(said.code, 78, "{}", said.err);
        assert!(said.err.contains(why), "{}", said.err);
        assert!(!said.err.contains("hunter2"), "{}", said.err);
    }
}

#[test]
fn a_database_that_can_not_be_reached_exits_69_without_the_password() {
    // Nobody listens at the discard port.
    let said = said(lease(&["list"]).env("LEASE_URL", "postgres://u:hunter2@127.0.0.1:9/db"));
    assert_eq!(said.code, 69, "{}", said.err);
    assert!(!said.err.contains("hunter2"), "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
}

#[test]
fn the_database_can_be_named_in_each_way_and_flags_come_first() {
    let (one, other) = (World::new(), World::new());
    one.text(&pause("one"));
    let file = one.folder.path().join("url");
    fs::write(&file, format!("{}\n", one.url)).unwrap();
    let file = file.to_str().unwrap();
    let shows = |command: &mut Command| {
        let said = said(command);
        assert_eq!(said.code, 0, "{}", said.err);
        said.out.contains("one")
    };
    assert!(shows(lease(&["list", "--url", &one.url]).env("LEASE_URL", &other.url)));
    assert!(shows(lease(&["list", "--url-file", file]).env("LEASE_URL", &other.url)));
    assert!(shows(lease(&["list"]).env("LEASE_URL_FILE", file)));
    assert!(!shows(
        lease(&["list"])
            .env("LEASE_URL_FILE", file)
            .env("LEASE_URL", &other.url)
    ));
    let empty = one.folder.path().join("empty");
    fs::write(&empty, "\n").unwrap();
    for file in [empty.to_str().unwrap(), "/no/such/file"] {
        let said = said(&mut lease(&["list", "--url-file", file]));
        assert_eq!(said.code, 78, "{}", said.err);
        assert!(said.err.contains(file), "{}", said.err);
    }
}

#[test]
fn local_is_a_file_in_the_folder_for_state() {
    let folder = TempDir::new().unwrap();
    let state = folder.path().join("state");
    let said_by = |command: &mut Command| {
        let said = said(command);
        assert_eq!(said.code, 0, "{}", said.err);
    };
    said_by(lease(&["list", "--local"]).env("XDG_STATE_HOME", &state));
    assert!(state.join("lease/leases.db").exists());
    said_by(
        lease(&["list", "--local"])
            .env("XDG_STATE_HOME", "relative")
            .env("HOME", folder.path()),
    );
    assert!(folder.path().join(".local/state/lease/leases.db").exists());
    let homeless = said(&mut lease(&["list", "--local"]));
    assert_eq!(homeless.code, 78);
}

#[test]
fn the_table_can_be_printed_for_each_engine_without_a_database() {
    for (url, word) in [
        ("postgres://h/db", "timestamptz"),
        ("mysql://h/db", "VARBINARY"),
        ("mariadb://h/db", "VARBINARY"),
        ("sqlite:/no/such/x.db", "STRICT"),
    ] {
        let said = said(&mut lease(&["migrate", "--print", "--url", url]));
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.out.contains(word) && said.out.ends_with(";\n"), "{}", said.out);
    }
}

#[test]
fn completions_and_manual_pages_are_made() {
    for shell in ["bash", "zsh", "fish"] {
        let said = said(&mut lease(&["completions", shell]));
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.out.contains("older-than"), "{shell}");
    }
    let folder = TempDir::new().unwrap();
    let said = said(&mut lease(&["man", folder.path().to_str().unwrap()]));
    assert_eq!(said.code, 0, "{}", said.err);
    let page = |name: &str| fs::read_to_string(Path::new(folder.path()).join(name)).unwrap();
    assert!(page("lease.1").contains("Exit codes"));
    assert!(page("lease-pause.1").contains("reason"));
}

/// A name is data on its way through arguments, environment, SQL, tables, JSON and back.
#[test]
fn hostile_names_and_reasons_are_only_text_for_every_command() {
    let world = World::new();
    let crab = "\u{1f980}".repeat(32);
    let hostile = [
        "'; DROP TABLE task_leases; --",
        "\" OR \"\"=\"",
        "%s%n%x",
        "$(exit 9)`exit 9`",
        "../../etc/passwd",
        "a\\b\\0",
        "\u{202e}txet",
        "{{name}} {0}",
        &crab,
    ];
    for name in hostile {
        let ran = world.text(&["run", name, "--", "sh", "-c", "printf %s \"$LEASE_NAME\""]);
        assert_eq!(ran, name);
        world.text(&["pause", name, "--for", "1h", "--reason", name, "--by", "ops"]);
        let (row, code) = world.json(&["show", name]);
        assert_eq!(
            (row["name"].as_str(), row["note"].as_str(), code),
            (Some(name), Some(name), 0)
        );
        world.text(&["resume", name]);
    }
    let (rows, _) = world.json(&["list"]);
    let mut listed: Vec<&str> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    let mut expected = hostile;
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    assert_eq!(world.text(&["list"]).matches("DROP TABLE").count(), 2, "name and note");
    for name in ["", " padded", "a\nb", "a\u{1b}[2J", "a\u{9b}2J", &"x".repeat(129)] {
        let said = world.says(&["run", name, "--", "true"]);
        assert_eq!(said.code, 64, "{name:?}: {}", said.err);
        assert!(!said.err.contains(['\u{1b}', '\u{9b}']), "{:?}", said.err);
    }
}

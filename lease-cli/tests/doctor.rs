//! `lease doctor`: its lines, its JSON and its exit codes. What it finds is tested with the backends.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod support;

use std::fs;

use lease_testkit::servers::Postgres;
use serde_json::Value;

use support::World;

fn check<'a>(findings: &'a Value, name: &str) -> &'a Value {
    let findings = findings.as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["check"] == name)
        .unwrap_or_else(|| panic!("{findings:?}"))
}

#[test]
fn a_database_that_is_fine_has_a_line_a_check_and_exits_0() {
    let world = World::new();
    let (found, code) = world.json(&["doctor"]);
    assert_eq!(code, 0, "{found}");
    for finding in found.as_array().unwrap() {
        let mut keys: Vec<&String> = finding.as_object().unwrap().keys().collect();
        keys.sort();
        assert_eq!(keys, ["check", "found", "level", "todo"]);
        assert!(
            ["ok", "warning"].contains(&finding["level"].as_str().unwrap()),
            "{finding}"
        );
        assert_eq!(finding["todo"].is_null(), finding["level"] == "ok", "{finding}");
    }
    for name in [
        "connection",
        "latency",
        "clock_offset",
        "clock_steps",
        "schema",
        "integrity",
        "file_system",
    ] {
        check(&found, name);
    }
    let text = world.text(&["doctor"]);
    assert!(
        text.starts_with("ok       connection    ") && text.contains("leases.db"),
        "{text}"
    );
    // The folder of tests may be in memory, which is a warning.
    let quiet = world.text(&["doctor", "--quiet"]);
    assert!(!quiet.contains("ok       "), "{quiet}");
}

#[test]
fn a_database_that_can_not_be_reached_is_the_first_line_and_the_exit_code() {
    for (url, code) in [
        ("postgres://u:hunter2@127.0.0.1:9/db", 69),
        ("sqlite:/no/such/folder/x.db", 78),
    ] {
        let world = World::on(url);
        let said = world.says(&["doctor"]);
        assert_eq!((said.code, said.err.as_str()), (code, ""));
        assert!(said.out.starts_with("error    connection    "), "{}", said.out);
        assert!(said.out.contains("to do: "), "{}", said.out);
        let (found, json_code) = world.json(&["doctor"]);
        assert_eq!(json_code, code);
        assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
        assert_eq!(check(&found, "connection")["level"], "error");
        assert!(!format!("{found}{}", said.out).contains("hunter2"), "{found}");
    }
    let said = World::on("").says(&["doctor"]);
    assert_eq!((said.code, said.out.as_str()), (78, ""));
    assert!(said.err.starts_with("lease: no database is named"), "{}", said.err);
}

#[test]
fn a_file_that_is_no_database_is_told_in_the_first_line() {
    let world = World::new();
    fs::write(world.folder.path().join("leases.db"), "x".repeat(5_000)).unwrap();
    let (found, code) = world.json(&["doctor"]);
    assert_eq!(code, 78, "{found}");
    assert!(
        check(&found, "connection")["found"]
            .as_str()
            .unwrap()
            .contains("not a database"),
        "{found}"
    );
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn what_is_wrong_with_a_server_is_an_exit_code_and_all_lines_are_there() {
    let database = Postgres::shared().unwrap().database().unwrap();
    let world = World::on(database.url());
    let (found, code) = world.json(&["doctor"]);
    assert_eq!(code, 78, "there is no table: {found}");
    assert_eq!(check(&found, "schema")["level"], "error");
    world.text(&["migrate"]);
    let (found, code) = world.json(&["doctor"]);
    assert_eq!(code, 0, "{found}");
    for name in [
        "connection",
        "version",
        "pooler",
        "encryption",
        "latency",
        "replication",
        "durability",
        "privileges",
    ] {
        check(&found, name);
    }
    let setting = format!(
        "ALTER DATABASE {} SET default_transaction_read_only = on",
        database.name()
    );
    database.sql(&setting).unwrap();
    let (found, code) = world.json(&["doctor"]);
    assert_eq!(code, 69, "it may be better later: {found}");
    assert_eq!(check(&found, "replication")["level"], "error");
}

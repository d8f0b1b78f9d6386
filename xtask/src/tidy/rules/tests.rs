//! For each rule: a bad sample is found, a good one is not.

use super::*;
use crate::tidy::sample;

/// The lines in which the rule finds something, its sample put together from the halves of a pattern.
fn found(rule: Rule, path: &str, text: &[&str]) -> Vec<usize> {
    let findings = rule(&sample(path, text.concat()));
    findings.iter().map(|finding| finding.line).collect()
}

const NOWHERE: [usize; 0] = [];

#[test]
fn ignored_test_without_a_reason() {
    let rule = ignored_without_reason;
    assert_eq!(found(rule, "a.rs", &["#[test]\n  #[ign", "ore]\nfn a() {}"]), [2]);
    assert_eq!(found(rule, "a.rs", &["#[test]\n#[ignore = \"needs it\"]"]), NOWHERE);
    assert_eq!(found(rule, "a.rs", &["/// not a bare `#[ign", "ore]`"]), NOWHERE);
    assert_eq!(found(rule, "a.md", &["#[ign", "ore]"]), NOWHERE);
}

#[test]
fn marks_of_unfinished_work() {
    for mark in [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["HA", "CK"]].map(|halves| halves.concat()) {
        for path in ["a.rs", "a.md", "a.toml", "a.sh"] {
            assert_eq!(
                found(marks, path, &["fine\n// ", &mark, ": later"]),
                [2],
                "{mark} in {path}"
            );
        }
        assert_eq!(found(marks, "a.rs", &["let ", &mark, "XX = 1;"]), NOWHERE);
    }
}

#[test]
fn insert_that_ignores_errors() {
    let rule = ignored_insert_errors;
    assert_eq!(found(rule, "a.sql", &["\ninsert ign", "ore INTO t VALUES (1)"]), [2]);
    assert_eq!(found(rule, "a.rs", &["INSERT INTO ignored VALUES (1)"]), NOWHERE);
}

#[test]
fn banner_comments() {
    assert_eq!(found(banners, "a.rs", &["//", "//////////\n"]), [1]);
    assert_eq!(found(banners, "a.rs", &["x\n    // ==", "== Part ==", "=="]), [2]);
    assert_eq!(found(banners, "a.toml", &["# --", "-- part"]), [1]);
    assert_eq!(found(banners, "a.sql", &["--", "---- part"]), [1]);
    let fine = "//! | a | b |\n//! |---|---|\n/// # Errors\n// It is --quiet.\nlet a = b - ----c;";
    assert_eq!(found(banners, "a.rs", &[fine]), NOWHERE);
    assert_eq!(found(banners, "a.toml", &["## A feature.\nkey = \"# ----\""]), NOWHERE);
}

#[test]
fn holes_that_panic() {
    assert_eq!(found(unfinished, "a.rs", &["to", "do!()"]), [1]);
    assert_eq!(found(unfinished, "a.rs", &["unimpl", "emented!(\"x\")"]), [1]);
    assert_eq!(found(unfinished, "a.rs", &["unreachable!()"]), NOWHERE);
}

#[test]
fn cases_that_sleep() {
    let case = "lease-testkit/src/cases/basic.rs";
    assert_eq!(found(sleeping_cases, case, &["std::thread::", "sleep(ttl);"]), [1]);
    assert_eq!(
        found(sleeping_cases, case, &["tokio::time::", "sleep(ttl).await;"]),
        [1]
    );
    assert_eq!(found(sleeping_cases, case, &["store.sleep(ttl).await;"]), NOWHERE);
    let other = "lease-testkit/src/harness.rs";
    assert_eq!(found(sleeping_cases, other, &["std::thread::", "sleep(ttl);"]), NOWHERE);
}

#[test]
fn hosts_of_packages() {
    assert_eq!(found(hosts, "a.md", &["\nsee https://crates", ".io/crates/lease"]), [2]);
    assert_eq!(found(hosts, "a.sh", &["curl deb.debian", ".org"]), [1]);
    assert_eq!(
        found(hosts, "a.md", &["see https://docs.rs and https://example.com"]),
        NOWHERE
    );
}

#[test]
fn paths_of_one_machine() {
    assert_eq!(found(machine_paths, "a.sh", &["cd /wo", "rk/main"]), [1]);
    assert_eq!(found(machine_paths, "a.rs", &["\"/ho", "me/me/x\""]), [1]);
    assert_eq!(
        found(
            machine_paths,
            "a.md",
            &["[a](src/wo", "rk/x.rs) https://a.example/ho", "me/"]
        ),
        NOWHERE
    );
}

#[test]
fn files_outside_the_tree() {
    assert_eq!(
        found(outside_the_tree, "a.rs", &["include_str!(\"../", "shared/x.md\")"]),
        [1]
    );
    assert_eq!(
        found(outside_the_tree, "a.rs", &["include_str!(\"../share/x.md\")"]),
        NOWHERE
    );
}

#[test]
fn title_of_a_decision() {
    assert_eq!(
        found(decision_title, "docs/adr/0002-time.md", &["# 0002: Time\n"]),
        NOWHERE
    );
    assert_eq!(found(decision_title, "docs/adr/0002-time.md", &["# 0003: Time\n"]), [1]);
    assert_eq!(found(decision_title, "docs/adr/time.md", &["# 0003: Time\n"]), [1]);
    assert_eq!(
        found(decision_title, "docs/guarantees.md", &["# Guarantees\n"]),
        NOWHERE
    );
}

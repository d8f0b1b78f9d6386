//! `cargo xtask test` that is killed leaves neither servers nor a test program behind.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Stands in for cargo: it says who it is and where the servers are, starts a program, and never ends.
const CARGO: &str = r#"#!/bin/sh
case "$*" in *--no-run*) exit 0 ;; esac
sleep 1000 &
echo "$$ $! $LEASE_TEST_POSTGRES_URL $LEASE_TEST_MYSQL_URL $LEASE_TEST_MARIADB_URL" > "$TOLD.new"
mv "$TOLD.new" "$TOLD"
wait
"#;

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_killed_test_run_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (cargo, told) = (folder.path().join("cargo"), folder.path().join("told"));
    fs::write(&cargo, CARGO).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("test")
        .env("CARGO", &cargo)
        .env("TOLD", &told)
        // This very test may run under one whose servers it would be given.
        .env_remove("LEASE_TEST_POSTGRES_URL")
        .env_remove("LEASE_TEST_MYSQL_URL")
        .env_remove("LEASE_TEST_MARIADB_URL")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    // Servers may be made from images that have to be built first.
    wait_until("the tests run", Duration::from_secs(600), || told.exists());
    let text = fs::read_to_string(&told).unwrap();
    // MySQL is there only where there is a Docker engine.
    let [leader, program, urls @ ..] = &text.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{text}")
    };
    assert!(urls.len() >= 2 && urls.iter().all(|url| answers(url)), "{text}");
    assert!(runs(leader) && runs(program));

    run.kill().unwrap();
    run.wait().unwrap();
    // A busy machine takes a while; an idle one, a fraction of a second.
    wait_until("all is gone", Duration::from_secs(60), || {
        !urls.iter().any(|url| answers(url)) && !runs(leader) && !runs(program)
    });
}

fn wait_until(what: &str, limit: Duration, done: impl Fn() -> bool) {
    for _ in 0..limit.as_millis() / 100 {
        if done() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("{what}: not within {limit:?}");
}

/// Whether the process is there; one that has ended and was not yet waited for is not.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit(") ").next().unwrap_or_default().starts_with('Z'))
}

fn answers(url: &str) -> bool {
    let (_, place) = url.split_once('@').unwrap();
    TcpStream::connect(place.split('/').next().unwrap()).is_ok()
}

//! What `diagnose` says of real files.

use std::fs;
use std::path::Path;

use lease_core::{Finding, Level, RepoErrorKind};
use lease_sqlite::{SCHEMA, SqliteRepo, lease_core};
use tempfile::TempDir;

use crate::support::Database;

fn of<'a>(findings: &'a [Finding], check: &str) -> &'a Finding {
    findings
        .iter()
        .find(|finding| finding.check == check)
        .unwrap_or_else(|| panic!("no {check}: {findings:#?}"))
}

#[tokio::test]
async fn a_file_that_is_fine_has_a_line_for_each_thing_that_leases_hang_on() {
    let database = Database::migrated().await;
    let findings = database.repo().await.diagnose().await.unwrap();
    let checks: Vec<&str> = findings.iter().map(|finding| finding.check).collect();
    assert_eq!(
        checks,
        [
            "connection",
            "version",
            "privileges",
            "file_system",
            "durability",
            "latency",
            "clock_offset",
            "clock_steps",
            "schema",
            "integrity"
        ]
    );
    // The folder of tests may be in memory, and the machine busy.
    for finding in findings
        .iter()
        .filter(|finding| !["file_system", "latency"].contains(&finding.check))
    {
        assert_eq!(finding.level, Level::Ok, "{finding}");
        assert_eq!(finding.advice, None, "{finding}");
    }
    assert!(of(&findings, "connection").found.contains("leases.db"));
    assert!(of(&findings, "durability").found.contains("wal, synchronous = 2"));
}

#[tokio::test]
async fn a_file_in_memory_is_a_warning() {
    let repo = SqliteRepo::connect("sqlite::memory:").await.unwrap();
    repo.migrate().await.unwrap();
    assert_eq!(of(&repo.diagnose().await.unwrap(), "file_system").level, Level::Warning);
    let shared_memory = Path::new("/dev/shm");
    assert!(shared_memory.is_dir(), "Linux has a file system in memory there");
    let folder = TempDir::new_in(shared_memory).unwrap();
    let repo = SqliteRepo::open(folder.path().join("leases.db")).await.unwrap();
    let findings = repo.diagnose().await.unwrap();
    let found = of(&findings, "file_system");
    assert_eq!(found.level, Level::Warning, "{found}");
    assert!(found.found.contains("tmpfs"), "{found}");
}

#[tokio::test]
async fn a_table_that_is_missing_or_another_is_an_error_and_the_rest_is_told_all_the_same() {
    let database = Database::empty();
    let findings = database.repo().await.diagnose().await.unwrap();
    let schema = of(&findings, "schema");
    assert_eq!(schema.level, Level::Error(RepoErrorKind::SchemaMissing), "{schema}");
    assert!(schema.advice.as_ref().unwrap().contains("run migrate"), "{schema}");
    assert_eq!(of(&findings, "durability").level, Level::Ok);
    database.run("CREATE TABLE task_leases (name TEXT)");
    let findings = database.repo().await.diagnose().await.unwrap();
    let schema = of(&findings, "schema");
    assert_eq!(schema.level, Level::Error(RepoErrorKind::SchemaMismatch), "{schema}");
    assert!(schema.found.contains("column holder is missing"), "{schema}");
}

#[tokio::test]
async fn a_key_that_has_lost_a_row_is_an_error() {
    let database = Database::empty();
    database.run(&format!(
        "{SCHEMA}; INSERT INTO task_leases (name, holder, token, acquired_at, expires_at) VALUES ('the-job', 'pod/1', 1, 1, 1)"
    ));
    let mut bytes = fs::read(&database.path).unwrap();
    let places: Vec<usize> = bytes
        .windows(7)
        .enumerate()
        .filter(|(_, w)| w == b"the-job")
        .map(|(at, _)| at)
        .collect();
    assert_eq!(places.len(), 2, "in the table and in its index, which comes after it");
    bytes[places[1]..][..7].copy_from_slice(b"not-job");
    fs::write(&database.path, bytes).unwrap();
    let findings = database.repo().await.diagnose().await.unwrap();
    let integrity = of(&findings, "integrity");
    assert_eq!(
        integrity.level,
        Level::Error(RepoErrorKind::SchemaMismatch),
        "{integrity}"
    );
    assert!(integrity.found.contains("missing from index"), "{integrity}");
}

#[tokio::test]
async fn a_file_that_another_keeps_locked_is_an_error_once_it_was_waited_for() {
    let database = Database::migrated().await;
    let repo = database.repo().await;
    let mut other = database.sql();
    diesel::connection::SimpleConnection::batch_execute(&mut other, "BEGIN IMMEDIATE").unwrap();
    let findings = repo.diagnose().await.unwrap();
    let found = of(&findings, "privileges");
    // SQLite's own wait ends with the limit of the whole, so either may be first.
    let kinds = [RepoErrorKind::Conflict, RepoErrorKind::Timeout];
    assert!(kinds.map(Level::Error).contains(&found.level), "{found}");
}

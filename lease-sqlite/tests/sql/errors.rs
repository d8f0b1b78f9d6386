//! Each way in which a file can't be used has a kind, and names the file.

use std::fs;

use lease_sqlite::SqliteRepo;
use lease_sqlite::lease_core::{Acquire, Inspect, Label, Loss, Renew, Repo, RepoError, RepoErrorKind};

use crate::support::{Database, chain, claim};

async fn refused(url: &str) -> RepoError {
    let error = SqliteRepo::connect(url).await.expect_err(url);
    assert!(!error.may_have_executed(), "{}", chain(&error));
    error
}

#[tokio::test]
async fn a_path_that_leads_to_no_file_is_named() {
    let database = Database::empty();
    let folder = database.folder.path().display();
    for (url, why) in [
        (format!("sqlite:{folder}/no/such/x.db"), "there is no folder"),
        (format!("sqlite:{folder}"), "is no file"),
        ("sqlite:".to_owned(), "names no file"),
    ] {
        let error = refused(&url).await;
        assert_eq!(error.kind(), RepoErrorKind::Config, "{}", chain(&error));
        assert!(chain(&error).contains(why), "{}", chain(&error));
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_as_it_is() {
    let database = Database::empty();
    let text = "not a database, though it is long enough to look like one. ".repeat(100);
    fs::write(&database.path, &text).unwrap();
    let error = refused(database.path.to_str().unwrap()).await;
    assert_eq!(error.kind(), RepoErrorKind::Config, "{}", chain(&error));
    assert!(chain(&error).contains("file is not a database"), "{}", chain(&error));
    assert!(chain(&error).contains("leases.db"), "{}", chain(&error));
    assert_eq!(fs::read_to_string(&database.path).unwrap(), text);
}

/// SQLite marks in the file who can write to it.
#[tokio::test]
async fn a_file_of_a_newer_format_is_refused() {
    let database = Database::migrated().await;
    database.run("PRAGMA wal_checkpoint(TRUNCATE)");
    let mut bytes = fs::read(&database.path).unwrap();
    // "File format write version" and "read version".
    bytes[18..20].copy_from_slice(&[9, 9]);
    fs::write(&database.path, bytes).unwrap();
    let error = refused(database.path.to_str().unwrap()).await;
    assert!(
        matches!(error.kind(), RepoErrorKind::Config | RepoErrorKind::ReadOnly),
        "{}",
        chain(&error)
    );
}

#[tokio::test]
async fn a_missing_table_says_migrate() {
    let database = Database::empty();
    let repo = database.repo().await;
    let error = repo.acquire(&claim("job")).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::SchemaMissing, "{}", chain(&error));
    assert!(chain(&error).contains("run migrate"), "{}", chain(&error));
    assert_eq!(
        repo.check_schema().await.unwrap_err().kind(),
        RepoErrorKind::SchemaMissing
    );
    repo.migrate().await.unwrap();
    repo.migrate().await.unwrap();
    repo.check_schema().await.unwrap();
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
}

#[tokio::test]
async fn whatever_is_wrong_with_the_table_is_named_in_one_message() {
    let good = include_str!("../../src/schema.sql");
    for (from, to, why) in [
        (
            "name TEXT NOT NULL PRIMARY KEY",
            "name TEXT NOT NULL",
            "no primary key or unique index on name alone",
        ),
        (
            "name TEXT NOT NULL PRIMARY KEY",
            "name TEXT NOT NULL COLLATE NOCASE PRIMARY KEY",
            "compared byte for byte",
        ),
        (
            "token INTEGER NOT NULL",
            "token TEXT NOT NULL",
            "column token is TEXT, not INTEGER",
        ),
        (
            "expires_at INTEGER NOT NULL",
            "expires_at INTEGER",
            "column expires_at may be null",
        ),
        ("note TEXT", "note TEXT NOT NULL", "column note is NOT NULL"),
        (
            "note TEXT",
            "extra TEXT NOT NULL",
            "column note is missing; column extra is not ours",
        ),
    ] {
        let database = Database::empty();
        assert!(good.contains(from));
        database.run(&good.replace(from, to));
        let repo = database.repo().await;
        for error in [
            repo.check_schema().await.unwrap_err(),
            repo.migrate().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), RepoErrorKind::SchemaMismatch, "{}", chain(&error));
            assert!(chain(&error).contains(why), "{}", chain(&error));
        }
    }
    let more = good.replace("note TEXT", "note TEXT, extra TEXT NOT NULL DEFAULT 'x'");
    let database = Database::empty();
    database.run(&more);
    let repo = database.repo().await;
    repo.check_schema().await.unwrap();
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
}

#[tokio::test]
async fn a_table_without_a_key_grants_nothing() {
    let database = Database::empty();
    database.run(&include_str!("../../src/schema.sql").replace(" PRIMARY KEY", ""));
    let error = database.repo().await.acquire(&claim("job")).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::SchemaMismatch, "{}", chain(&error));
}

/// Whoever has a file open keeps it when it is deleted, and would go on with leases of its own.
#[tokio::test]
async fn a_file_that_was_replaced_is_not_gone_on_with() {
    let database = Database::migrated().await;
    let repo = database.repo().await;
    let held = claim("job");
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    for file in fs::read_dir(database.folder.path()).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    let error = repo.renew(&held).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::SchemaMissing, "{}", chain(&error));
    let other = database.repo().await;
    other.migrate().await.unwrap();
    let next = claim("job");
    assert!(matches!(other.acquire(&next).await.unwrap(), Acquire::Granted(_)));
    assert!(matches!(
        repo.renew(&held).await.unwrap(),
        Renew::Lost(Loss::Taken(who)) if who.holder == next.holder.as_str()
    ));
}

#[tokio::test]
async fn absurd_durations_are_no_errors() {
    let database = Database::migrated().await;
    let repo = database.repo().await;
    let mut long = claim("job");
    long.ttl = std::time::Duration::MAX;
    long.at_least_for = std::time::Duration::MAX;
    assert!(matches!(repo.acquire(&long).await.unwrap(), Acquire::Granted(_)));
    assert_eq!(repo.renew(&long).await.unwrap(), Renew::Renewed);
    repo.release(&long).await.unwrap();
    let (by, why) = (
        Label::new("op").unwrap(),
        lease_sqlite::lease_core::Note::new("x").unwrap(),
    );
    repo.pause(&long.name, std::time::Duration::MAX, &by, &why)
        .await
        .unwrap();
    assert_eq!(repo.purge(std::time::Duration::MAX).await.unwrap(), 0);
}

#[tokio::test]
async fn leases_in_memory_are_those_of_the_repo_and_its_clones() {
    let repo = SqliteRepo::connect("sqlite::memory:").await.unwrap();
    repo.migrate().await.unwrap();
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
    assert!(matches!(
        repo.clone().acquire(&claim("job")).await.unwrap(),
        Acquire::Busy(Some(_))
    ));
    let other = SqliteRepo::connect(":memory:").await.unwrap();
    other.migrate().await.unwrap();
    assert!(matches!(
        other.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
}

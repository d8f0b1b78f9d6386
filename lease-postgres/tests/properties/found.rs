//! What the properties found once, each in its smallest form.

use std::time::Duration;

use lease_core::{Acquire, Inspect, Label, Note, Release, Renew, Repo, RepoErrorKind};

use crate::support::{Database, chain, claim, name};

/// It was `Other`, which does not say what to do.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_null_where_there_may_be_none_is_a_schema_mismatch() {
    let (database, repo) = Database::migrated().await;
    database.run(
        "ALTER TABLE task_leases ALTER expires_at DROP NOT NULL; \
         INSERT INTO task_leases VALUES ('job', 'pod/1', 1, now(), NULL)",
    );
    let error = repo.list().await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::SchemaMismatch);
    assert!(
        chain(&error).contains("column expires_at may be null"),
        "{}",
        chain(&error)
    );
    assert_eq!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Busy(None),
        "neither live nor expired"
    );
}

/// "cached plan must not change result type": the connection went back to its pool with the statement, for ever.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_table_altered_under_prepared_statements_needs_no_restart() {
    let (database, repo) = Database::migrated().await;
    let times = |zone| {
        let columns = ["acquired_at", "expires_at", "released_at"].map(|column| format!("ALTER {column} TYPE {zone}"));
        database.run(&format!("ALTER TABLE task_leases {}", columns.join(", ")));
    };
    times("timestamp");
    let held = claim("job");
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    times("timestamptz");
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Busy(Some(_))
    ));
    assert_eq!(repo.release(&held).await.unwrap(), Release::Released);
}

/// The eight bytes of a `double precision` were read as a token of 4.8 * 10^18: no later one is ever above it.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_token_in_a_column_of_another_type_is_the_number_that_stands_there() {
    let (database, repo) = Database::migrated().await;
    let mut last = 0;
    for kind in ["double precision", "numeric", "bigint"] {
        database.run(&format!(
            "ALTER TABLE task_leases ALTER token DROP DEFAULT, ALTER token TYPE {kind}"
        ));
        let held = claim("job");
        let Acquire::Granted(token) = repo.acquire(&held).await.unwrap() else {
            panic!("the lease is free");
        };
        let row = repo.get(&held.name).await.unwrap().unwrap();
        assert_eq!(token.get(), row.token, "{kind}");
        assert!(
            last < token.get() && token.get() < 1 << 53,
            "{kind}: {token} after {last}"
        );
        last = token.get();
        repo.release(&held).await.unwrap();
    }
}

/// A `date` cuts the expiry to midnight, which is over: whoever asked next was granted it too.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_column_that_cuts_the_expiry_grants_the_lease_to_nobody() {
    let (database, repo) = Database::migrated().await;
    database.run("ALTER TABLE task_leases ALTER expires_at TYPE date");
    for claim in [claim("job"), claim("job")] {
        let error = repo.acquire(&claim).await.unwrap_err();
        assert_eq!(error.kind(), RepoErrorKind::SchemaMismatch);
        assert!(error.may_have_executed(), "it is undone");
    }
    database.run("ALTER TABLE task_leases ALTER expires_at TYPE timestamptz");
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
}

/// A grant named neither column when it made the row: it was born released, and could not be renewed.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn defaults_of_the_table_do_not_get_into_a_grant() {
    let (database, repo) = Database::migrated().await;
    database.run("ALTER TABLE task_leases ALTER released_at SET DEFAULT now(), ALTER note SET DEFAULT 'x'");
    let held = claim("job");
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    assert_eq!(repo.get(&held.name).await.unwrap().unwrap().note, None);
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    let (by, why) = (Label::new("ops").unwrap(), Note::new("a test").unwrap());
    repo.pause(&name("other"), Duration::from_secs(60), &by, &why)
        .await
        .unwrap();
    assert_eq!(repo.resume(&name("other")).await.unwrap(), Release::Released);
}

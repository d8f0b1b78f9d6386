//! `migrate` and `check_schema`.

use std::error::Error;
use std::time::Duration;

use futures_util::future::join_all;
use lease_core::{Acquire, Inspect, Renew, Repo, RepoErrorKind};
use tokio::task::JoinHandle;

use crate::support::{Database, chain, claim, name};

/// As the Go package makes it.
const GO_TABLE: &str = "CREATE TABLE task_leases (name varchar(128) PRIMARY KEY, holder varchar(128) NOT NULL, \
     acquired_at timestamptz NOT NULL, expires_at timestamptz NOT NULL); \
     CREATE INDEX idx_task_leases_expires_at ON task_leases (expires_at); \
     INSERT INTO task_leases VALUES ('job', 'pod-1', now(), now() + interval '1 hour')";

async fn table(ddl: &str) -> Database {
    let database = Database::empty();
    database.run(ddl);
    database
}

/// What `check_schema` says of a table of seven columns, made by a change to the right one.
async fn complaint(change: &str) -> String {
    let (database, repo) = Database::migrated().await;
    repo.check_schema().await.unwrap();
    database.run(change);
    let error = repo.check_schema().await.expect_err(change);
    assert_eq!(error.kind(), RepoErrorKind::SchemaMismatch, "{}", chain(&error));
    error.source().unwrap().to_string()
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn the_table_is_as_the_contract_says() {
    let (database, _) = Database::migrated().await;
    let columns = "SELECT string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), c.collname, \
         CASE WHEN a.attnotnull THEN 'not null' END), ', ' ORDER BY a.attnum) || (SELECT reloptions::text FROM pg_class \
         WHERE oid = 'task_leases'::regclass) || (SELECT count(*) FROM pg_index WHERE indrelid = 'task_leases'::regclass) \
         FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation AND c.collname <> 'default' \
         WHERE a.attrelid = 'task_leases'::regclass AND a.attnum > 0";
    let shown: String = database.sql().await.query_one(columns, &[]).await.unwrap().get(0);
    assert_eq!(
        shown,
        "name character varying(128) C not null, holder character varying(128) C not null, token bigint not null, \
         acquired_at timestamp with time zone not null, expires_at timestamp with time zone not null, \
         released_at timestamp with time zone, note character varying(255){fillfactor=50}1"
    );
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_table_of_the_go_package_is_completed_and_shared() {
    let database = table(GO_TABLE).await;
    let repo = database.repo().await;
    let error = repo.acquire(&claim("job")).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::SchemaMismatch, "{}", chain(&error));
    let why = error.source().unwrap().to_string();
    for column in ["token", "released_at", "note"] {
        assert!(
            why.contains(&format!("column {column} is missing: run migrate")),
            "{why}"
        );
    }
    let file = "SELECT pg_relation_filenode('task_leases')::bigint";
    let before: i64 = database.sql().await.query_one(file, &[]).await.unwrap().get(0);
    repo.migrate().await.unwrap();
    repo.check_schema().await.unwrap();
    let after: i64 = database.sql().await.query_one(file, &[]).await.unwrap().get(0);
    assert_eq!(before, after, "the rows were not rewritten under the lock");

    assert!(matches!(repo.acquire(&claim("job")).await.unwrap(), Acquire::Busy(Some(who)) if who.holder == "pod-1"));
    let old_token = repo.get(&name("job")).await.unwrap().unwrap().token;
    database.age(Duration::from_secs(3_600));
    let taken = repo.acquire(&claim("job")).await.unwrap();
    assert!(matches!(taken, Acquire::Granted(token) if token.get() > old_token && old_token > 1 << 50));

    // A pod of the Go package still works beside it: our columns have defaults.
    let go = "INSERT INTO task_leases (name, holder, acquired_at, expires_at) \
              VALUES ('go', 'pod-2', now(), now() + interval '90 s') ON CONFLICT (name) DO UPDATE SET holder = EXCLUDED.holder";
    database.run(go);
    assert!(matches!(
        repo.acquire(&claim("go")).await.unwrap(),
        Acquire::Busy(Some(_))
    ));
    assert!(
        repo.get(&name("go")).await.unwrap().unwrap().token > old_token,
        "a new row's token is the clock"
    );
}

/// C28.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_table_without_a_unique_key_is_refused() {
    let change = "ALTER TABLE task_leases DROP CONSTRAINT task_leases_pkey";
    assert!(
        complaint(change)
            .await
            .contains("no primary key or unique index on name alone")
    );
    let (database, repo) = Database::migrated().await;
    let wider = "ALTER TABLE task_leases DROP CONSTRAINT task_leases_pkey, ADD PRIMARY KEY (name, holder)";
    database.run(wider);
    let error = repo.acquire(&claim("job")).await.unwrap_err();
    assert_eq!(
        error.kind(),
        RepoErrorKind::SchemaMismatch,
        "nobody wins: {}",
        chain(&error)
    );
    assert_eq!(repo.migrate().await.unwrap_err().kind(), RepoErrorKind::SchemaMismatch);
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn whatever_is_wrong_is_named_in_one_message() {
    let folds = "CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false); \
                 ALTER TABLE task_leases ALTER name TYPE varchar(128) COLLATE ci";
    for (change, word) in [
        (folds, "nondeterministic collation ci"),
        (
            "ALTER TABLE task_leases ALTER name TYPE varchar(64)",
            "column name is character varying(64), not varchar(128)",
        ),
        (
            "ALTER TABLE task_leases ALTER holder TYPE char(128)",
            "column holder is character(128)",
        ),
        (
            "ALTER TABLE task_leases ALTER expires_at TYPE timestamptz(0)",
            "timestamp(0) with time zone, not timestamp with",
        ),
        (
            "ALTER TABLE task_leases ALTER acquired_at TYPE timestamp",
            "column acquired_at is timestamp without time zone",
        ),
        (
            "ALTER TABLE task_leases ALTER expires_at DROP NOT NULL",
            "column expires_at may be null",
        ),
        (
            "ALTER TABLE task_leases ALTER note SET NOT NULL",
            "column note is NOT NULL",
        ),
        (
            "ALTER TABLE task_leases ADD extra int NOT NULL",
            "column extra is not ours",
        ),
        ("ALTER TABLE task_leases SET UNLOGGED", "a crash empties it"),
        (
            "ALTER TABLE task_leases RENAME TO t; CREATE VIEW task_leases AS SELECT * FROM t",
            "is no table",
        ),
    ] {
        let said = complaint(change).await;
        assert!(said.contains(word), "{change}: {said}");
    }
    let two = "ALTER TABLE task_leases DROP note, ALTER token TYPE int";
    let said = complaint(two).await;
    assert!(
        said.contains("column note is missing") && said.contains("column token is integer, not bigint"),
        "{said}"
    );
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn what_costs_only_speed_is_no_error() {
    let (database, repo) = Database::migrated().await;
    let index = "CREATE INDEX slow ON task_leases (expires_at); ALTER TABLE task_leases RESET (fillfactor)";
    database.run(index);
    repo.check_schema().await.unwrap();
    repo.migrate().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn ten_pods_migrate_an_empty_database_at_once() {
    let database = Database::empty();
    let pods = join_all((0..10).map(|_| database.repo())).await;
    for migrated in join_all(pods.iter().map(|pod| pod.migrate())).await {
        migrated.unwrap();
    }
    assert!(matches!(
        pods[0].acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
}

/// C53. The table is one that needs a change, and a transaction keeps it locked against that for two seconds, a real
/// wait, while five leases are renewed all the time with little patience. None is lost, no renewal fails.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn ten_pods_migrate_while_leases_are_renewed_and_a_transaction_holds_the_table() {
    let (database, repo) = Database::migrated().await;
    let mut renewers: Vec<JoinHandle<u32>> = Vec::new();
    let mut reader = database.sql().await;
    database.run("ALTER TABLE task_leases DROP note");
    // An acquire would clear the note, so the rows of this half-made table are put there by hand.
    let claims: Vec<_> = (0..5).map(|at| claim(&format!("job {at}"))).collect();
    for claim in &claims {
        let insert = "INSERT INTO task_leases (name, holder, acquired_at, expires_at) \
                      VALUES ($1, $2, clock_timestamp(), clock_timestamp() + interval '30 s')";
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&claim.name.as_str(), &claim.holder.as_str()];
        database.sql().await.execute(insert, &values).await.unwrap();
    }
    let long = reader.transaction().await.unwrap();
    long.batch_execute("SELECT count(*) FROM task_leases").await.unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    for claim in claims {
        let (repo, stopped) = (repo.clone(), stopped.clone());
        renewers.push(tokio::spawn(async move {
            let mut renewals = 0;
            while !*stopped.borrow() {
                assert_eq!(repo.renew(&claim).await.unwrap(), Renew::Renewed);
                renewals += 1;
            }
            renewals
        }));
    }
    let pods = join_all((0..10).map(|_| database.repo())).await;
    let migrating = tokio::spawn(async move { join_all(pods.iter().map(|pod| pod.migrate())).await });
    long.batch_execute("SELECT pg_sleep(2)").await.unwrap();
    assert!(!migrating.is_finished(), "the table was held all the time");
    long.commit().await.unwrap();
    for migrated in migrating.await.unwrap() {
        migrated.unwrap();
    }
    stop.send(true).unwrap();
    for renewer in renewers {
        assert!(renewer.await.unwrap() > 10, "renewals passed in between");
    }
    repo.check_schema().await.unwrap();
}

//! `migrate` and `check_schema`.

use std::error::Error;
use std::time::Duration;

use diesel_async::RunQueryDsl;
use lease_core::{Acquire, Inspect, Renew, Repo, RepoErrorKind};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::{Dialect, Mysql, Settings};
use mysql_async::prelude::Queryable;

use crate::support::{Database, chain, claim, name, on_both, pool};

on_both!(
    the_table_is_as_the_contract_says,
    a_table_of_the_go_package_is_completed_and_shared,
    a_table_without_a_unique_key_is_refused,
    whatever_is_wrong_is_named_in_one_message,
    what_costs_only_speed_is_no_error,
    ten_pods_migrate_an_empty_database_at_once,
    ten_pods_migrate_while_leases_are_renewed_and_a_transaction_holds_the_table,
    a_sessions_patience_is_left_as_it_was,
    a_binary_log_takes_it_all,
);

/// As the Go package makes it.
pub(crate) const GO_TABLE: &str = "CREATE TABLE task_leases (name varchar(128) NOT NULL PRIMARY KEY, \
     holder varchar(128) NOT NULL, acquired_at datetime(6) NOT NULL, expires_at datetime(6) NOT NULL, \
     KEY idx_task_leases_expires_at (expires_at)) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_unicode_ci";

/// What `check_schema` says of a table of seven columns, made by a change to the right one.
async fn complaint(dialect: Dialect, change: &str) -> String {
    let (database, repo) = Database::migrated(dialect).await;
    repo.check_schema().await.unwrap();
    database.run(change);
    let error = repo.check_schema().await.expect_err(change);
    assert_eq!(error.kind(), RepoErrorKind::SchemaMismatch, "{}", chain(&error));
    error.source().unwrap().to_string()
}

async fn the_table_is_as_the_contract_says(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let columns = database.run(
        "SELECT CONCAT_WS(' ', column_name, column_type, is_nullable) FROM information_schema.columns \
         WHERE table_schema = DATABASE() AND table_name = 'task_leases' ORDER BY ordinal_position",
    );
    let columns: Vec<_> = columns
        .iter()
        .map(|column| column.replace("bigint(20)", "bigint"))
        .collect();
    assert_eq!(
        columns,
        [
            "name varbinary(128) NO",
            "holder varbinary(128) NO",
            "token bigint NO",
            "acquired_at datetime(6) NO",
            "expires_at datetime(6) NO",
            "released_at datetime(6) YES",
            "note varbinary(255) YES"
        ]
    );
    // The default of a token is the clock.
    database.run(
        "INSERT INTO task_leases (name, holder, acquired_at, expires_at) \
         VALUES ('by hand', 'x', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
    );
    let row = repo.get(&name("by hand")).await.unwrap().unwrap();
    assert!((row.token - row.acquired_at.as_micros()).abs() < 1_000_000, "{row:?}");
}

async fn a_table_of_the_go_package_is_completed_and_shared(dialect: Dialect) {
    let database = Database::empty(dialect);
    database.run(GO_TABLE);
    database
        .run("INSERT INTO task_leases VALUES ('job', 'größe-1', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)");
    let repo = database.repo().await;
    let error = repo.acquire(&claim("job")).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::SchemaMismatch, "{}", chain(&error));
    let why = error.source().unwrap().to_string();
    for problem in [
        "column token is missing: run migrate",
        "column released_at is missing",
        "column note is missing",
        "column name is varchar(128), not varbinary(128)",
    ] {
        assert!(why.contains(problem), "{why}");
    }
    repo.migrate().await.unwrap();
    repo.check_schema().await.unwrap();
    repo.migrate().await.unwrap();

    assert!(matches!(repo.acquire(&claim("job")).await.unwrap(), Acquire::Busy(Some(who)) if who.holder == "größe-1"));
    for other in ["Job", "jób"] {
        assert!(
            matches!(repo.acquire(&claim(other)).await.unwrap(), Acquire::Granted(_)),
            "{other}"
        );
    }
    let old_token = repo.get(&name("job")).await.unwrap().unwrap().token;
    database.age(Duration::from_secs(3_600));
    let taken = repo.acquire(&claim("job")).await.unwrap();
    assert!(
        matches!(taken, Acquire::Granted(token) if token.get() > old_token && old_token > 1 << 50),
        "{taken:?} after {old_token}"
    );
}

/// C28.
async fn a_table_without_a_unique_key_is_refused(dialect: Dialect) {
    let said = complaint(dialect, "ALTER TABLE task_leases DROP PRIMARY KEY").await;
    assert!(said.contains("no primary key or unique index on name alone"), "{said}");
    let wider = "ALTER TABLE task_leases DROP PRIMARY KEY, ADD PRIMARY KEY (name, holder)";
    assert!(
        complaint(dialect, wider)
            .await
            .contains("no primary key or unique index")
    );
    let prefix = "ALTER TABLE task_leases DROP PRIMARY KEY, ADD UNIQUE KEY (name(10))";
    assert!(
        complaint(dialect, prefix)
            .await
            .contains("no primary key or unique index")
    );
    let (database, repo) = Database::migrated(dialect).await;
    database.run(wider);
    assert_eq!(repo.migrate().await.unwrap_err().kind(), RepoErrorKind::SchemaMismatch);
}

async fn whatever_is_wrong_is_named_in_one_message(dialect: Dialect) {
    for (change, word) in [
        (
            "ALTER TABLE task_leases MODIFY name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL",
            "column name is varchar(128), not varbinary(128)",
        ),
        (
            "ALTER TABLE task_leases MODIFY holder VARBINARY(64) NOT NULL",
            "column holder is varbinary(64), not varbinary(128)",
        ),
        (
            "ALTER TABLE task_leases MODIFY expires_at DATETIME NOT NULL",
            "column expires_at is datetime(0), not datetime(6)",
        ),
        (
            "ALTER TABLE task_leases MODIFY acquired_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
            "column acquired_at is timestamp(6), not datetime(6)",
        ),
        (
            "ALTER TABLE task_leases MODIFY expires_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) \
             ON UPDATE CURRENT_TIMESTAMP(6)",
            "column expires_at has an ON UPDATE clause",
        ),
        (
            "ALTER TABLE task_leases MODIFY expires_at DATETIME(6) NULL",
            "column expires_at may be null",
        ),
        (
            "ALTER TABLE task_leases MODIFY note VARBINARY(255) NOT NULL",
            "column note is NOT NULL",
        ),
        (
            "ALTER TABLE task_leases ADD extra int NOT NULL",
            "column extra is not ours",
        ),
        (
            "ALTER TABLE task_leases ENGINE = MyISAM",
            "the engine is MyISAM, not InnoDB",
        ),
        (
            "RENAME TABLE task_leases TO t; CREATE VIEW task_leases AS SELECT * FROM t",
            "is no table",
        ),
    ] {
        let said = complaint(dialect, change).await;
        assert!(said.contains(word), "{change}: {said}");
    }
    let two = "ALTER TABLE task_leases DROP note, MODIFY token int NOT NULL";
    let said = complaint(dialect, two).await;
    assert!(
        said.contains("column note is missing") && said.contains("column token is int, not bigint"),
        "{said}"
    );
}

async fn what_costs_only_speed_is_no_error(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    database.run("CREATE INDEX slow ON task_leases (expires_at)");
    database.run("ALTER TABLE task_leases ADD COLUMN ours int NOT NULL DEFAULT 7");
    repo.check_schema().await.unwrap();
    repo.migrate().await.unwrap();
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
}

async fn ten_pods_migrate_an_empty_database_at_once(dialect: Dialect) {
    let database = Database::empty(dialect);
    let mut pods = Vec::new();
    for _ in 0..10 {
        let pod = database.repo().await;
        pods.push(tokio::spawn(async move { pod.migrate().await.map(|()| pod) }));
    }
    for pod in pods {
        let repo = pod.await.unwrap().unwrap();
        repo.check_schema().await.unwrap();
    }
}

/// C53. The table is one that needs a change, and a transaction keeps it locked against that for two seconds, a real
/// wait, while five leases are renewed all the time. None is lost, no renewal fails.
async fn ten_pods_migrate_while_leases_are_renewed_and_a_transaction_holds_the_table(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let claims: Vec<_> = (0..5).map(|at| claim(&format!("job {at}"))).collect();
    for claim in &claims {
        repo.acquire(claim).await.unwrap();
    }
    database.run("ALTER TABLE task_leases DROP note");
    let mut long = database.sql().await;
    long.query_drop("BEGIN").await.unwrap();
    long.query_drop("SELECT COUNT(*) FROM task_leases").await.unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let renewers: Vec<_> = claims
        .into_iter()
        .map(|claim| {
            let (repo, stopped) = (repo.clone(), stopped.clone());
            tokio::spawn(async move {
                let mut renewals = 0;
                while !*stopped.borrow() {
                    assert_eq!(repo.renew(&claim).await.unwrap(), Renew::Renewed);
                    renewals += 1;
                }
                renewals
            })
        })
        .collect();
    let mut pods = Vec::new();
    for _ in 0..10 {
        let pod = database.repo().await;
        pods.push(tokio::spawn(async move { pod.migrate().await }));
    }
    long.query_drop("DO SLEEP(2)").await.unwrap();
    assert!(
        pods.iter().all(|pod| !pod.is_finished()),
        "the table was held all the time"
    );
    long.query_drop("COMMIT").await.unwrap();
    for pod in pods {
        pod.await.unwrap().unwrap();
    }
    stop.send(true).unwrap();
    for renewer in renewers {
        assert!(renewer.await.unwrap() > 10, "renewals passed in between");
    }
    repo.check_schema().await.unwrap();
}

#[derive(diesel::QueryableByName)]
struct Patience {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    patience: i64,
}

/// By a change that is made, and by one that is refused.
async fn a_sessions_patience_is_left_as_it_was(dialect: Dialect) {
    let database = Database::empty(dialect);
    let name = database.name();
    database.run(&format!("CREATE USER {name}; GRANT SELECT ON `{name}`.* TO {name}"));
    let (_, place) = database.url.split_once('@').unwrap();
    for (url, may) in [(database.url.clone(), true), (format!("mysql://{name}@{place}"), false)] {
        let pool = pool(&url, 1, "SET lock_wait_timeout = 77");
        let repo = MysqlRepo::new(pool.clone()).unwrap();
        let migrated = repo.migrate().await;
        database.run("ALTER TABLE task_leases DROP note");
        match repo.migrate().await {
            Ok(()) => assert!(may && migrated.is_ok()),
            Err(error) => assert!(!may && error.kind() == RepoErrorKind::Denied, "{}", chain(&error)),
        }
        let text = "SELECT CAST(@@lock_wait_timeout AS SIGNED) AS patience";
        let mut connection = pool.get().await.unwrap();
        let rows: Vec<Patience> = diesel::sql_query(text).load(&mut connection).await.unwrap();
        assert_eq!(rows[0].patience, 77, "may {may}");
        assert_eq!(pool.status().size, 1);
    }
    database.run(&format!("DROP USER {name}"));
}

/// Statements that a replica might carry out otherwise are refused in some of its formats. Durable servers have a log.
async fn a_binary_log_takes_it_all(dialect: Dialect) {
    let server = Mysql::private(dialect, &Settings::durable()).unwrap();
    let database = Database::on(&server);
    let shown = database.run("SHOW VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format')");
    let on = database.run("SELECT @@log_bin")[0] == "1";
    if !on {
        assert_eq!(dialect, Dialect::MariaDb, "{shown:?}");
        return;
    }
    database.run(GO_TABLE);
    database.run("INSERT INTO task_leases VALUES ('job', 'go', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
    let repo = database.repo().await;
    repo.migrate().await.unwrap();
    let held = claim("job");
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    assert!(matches!(
        repo.acquire(&claim("other")).await.unwrap(),
        Acquire::Granted(_)
    ));
}

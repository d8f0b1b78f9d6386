//! What `diagnose` says of real servers: each level of each line that a server can be brought to.

use futures_util::future::join_all;
use lease_core::{Finding, Level, RepoErrorKind};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::{Dialect, Mysql, Settings};

use crate::support::{AS_IT_IS, Database, on_both, pool, private_server};

on_both!(
    a_server_has_a_line_for_each_thing_that_leases_hang_on_and_each_says_what_is_wrong,
    a_pool_of_the_applications_is_told_of_too,
);

const ALL: [&str; 16] = [
    "connection",
    "version",
    "session",
    "encryption",
    "latency",
    "clock_offset",
    "clock_steps",
    "sysdate",
    "time_zone",
    "isolation",
    "writes",
    "replication",
    "durability",
    "connections",
    "schema",
    "hooks",
];

async fn diagnosis(url: &str) -> Vec<Finding> {
    MysqlRepo::connect(url).await.unwrap().diagnose().await.unwrap()
}

#[track_caller]
fn assert_level(findings: &[Finding], check: &str, level: Level, words: &str) {
    let finding = findings.iter().find(|finding| finding.check == check);
    let finding = finding.unwrap_or_else(|| panic!("no {check}: {findings:#?}"));
    assert_eq!(finding.level, level, "{finding}");
    assert!(finding.to_string().contains(words), "{finding}");
    assert_eq!(finding.advice.is_none(), level == Level::Ok, "{finding}");
}

/// The same database, for a user with these rights.
fn as_pod(database: &Database, rights: &str) -> String {
    let name = database.name();
    database.run(&format!(
        "CREATE USER IF NOT EXISTS 'pod'@'%' IDENTIFIED BY 'pod'; GRANT {rights} ON {name}.task_leases TO 'pod'@'%'"
    ));
    let (_, place) = database.url.split_once('@').unwrap();
    format!("mysql://pod:pod@{place}")
}

async fn a_server_has_a_line_for_each_thing_that_leases_hang_on_and_each_says_what_is_wrong(dialect: Dialect) {
    let server = Mysql::private(dialect, &Settings::durable()).unwrap();
    let database = Database::on(&server);
    database.repo().await.migrate().await.unwrap();
    let fine = diagnosis(&database.url).await;
    let checks: Vec<&str> = fine.iter().map(|finding| finding.check).collect();
    assert_eq!(checks, [&ALL[..], &["privileges"]].concat());
    // The machine may be busy.
    for finding in fine.iter().filter(|finding| finding.check != "latency") {
        assert_eq!(finding.level, Level::Ok, "{finding}");
        assert_eq!(finding.advice, None, "{finding}");
    }
    let engine = if dialect == Dialect::Mysql {
        "MySQL "
    } else {
        "MariaDB "
    };
    assert_level(&fine, "version", Level::Ok, engine);

    // Whatever breaks a promise only in some case, at once.
    let pod = as_pod(&database, "SELECT, INSERT, UPDATE, TRIGGER");
    server.set("innodb_flush_log_at_trx_commit", "2").unwrap();
    server.set("max_connections", "10").unwrap();
    database.run(
        "CREATE INDEX expiries ON task_leases (expires_at); \
         CREATE TRIGGER twice BEFORE UPDATE ON task_leases FOR EACH ROW SET NEW.note = NEW.note",
    );
    // Ten is the least that a server can be set to.
    let others = join_all((0..4).map(|_| database.sql())).await;
    let weak = diagnosis(&pod).await;
    drop(others);
    let warned = |check, words| assert_level(&weak, check, Level::Warning, words);
    warned("durability", "innodb_flush_log_at_trx_commit = 2");
    warned("connections", "raise max_connections");
    warned("go_pods", "expiries");
    warned("hooks", "1 triggers");
    warned("privileges", "GRANT DELETE");
    assert_level(&weak, "connection", Level::Ok, "as user pod@%");
    assert_level(&weak, "schema", Level::Ok, "");

    // What keeps leases from working, at once. It is said to have changed nothing.
    let name = database.name();
    database.run(&format!(
        "REVOKE UPDATE ON {name}.task_leases FROM 'pod'@'%'; ALTER TABLE task_leases DROP COLUMN released_at"
    ));
    server.set("read_only", "1").unwrap();
    let broken = diagnosis(&pod).await;
    let error = |check, kind, words| assert_level(&broken, check, Level::Error(kind), words);
    error("writes", RepoErrorKind::ReadOnly, "read_only is on");
    error("schema", RepoErrorKind::SchemaMismatch, "released_at is missing");
    error("privileges", RepoErrorKind::Denied, "GRANT UPDATE, DELETE");
    server.set("read_only", "0").unwrap();
    assert_eq!(database.run("SELECT COUNT(*) FROM task_leases"), ["0"]);

    database.run("DROP TABLE task_leases");
    let alone = diagnosis(&database.url).await;
    assert_level(
        &alone,
        "schema",
        Level::Error(RepoErrorKind::SchemaMissing),
        "run migrate",
    );
}

async fn a_pool_of_the_applications_is_told_of_too(dialect: Dialect) {
    let server = private_server(dialect);
    let database = Database::on(&server);
    for (setup, level, words) in [
        (AS_IT_IS, Level::Warning, "innodb_lock_wait_timeout = 50"),
        (
            "SET innodb_lock_wait_timeout = 5, autocommit = 0",
            Level::Ok,
            "committed on its own",
        ),
    ] {
        let repo = MysqlRepo::new(pool(&database.url, 1, setup)).unwrap();
        repo.migrate().await.unwrap();
        let findings = repo.diagnose().await.unwrap();
        assert_level(&findings, "session", level, words);
        assert_level(&findings, "privileges", Level::Ok, "");
        // The session is as it was.
        assert_level(&repo.diagnose().await.unwrap(), "session", level, words);
    }
    // With the default of this kit a server is not durable.
    let findings = diagnosis(&database.url).await;
    assert_level(
        &findings,
        "durability",
        Level::Warning,
        "innodb_flush_log_at_trx_commit",
    );
}

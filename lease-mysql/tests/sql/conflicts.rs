//! L9 and L10 where the server refuses a statement: what is tried again, how often, and what is said in the end.

use std::time::Duration;

use lease_core::{Acquire, Renew, Repo, RepoErrorKind};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::Dialect;
use mysql_async::prelude::Queryable;
use tokio::time::timeout;

use crate::support::{Database, chain, claim, on_both, pool};

on_both!(
    conflicts_are_retried_as_long_as_there_is_time,
    a_deadlock_is_retried,
    a_lock_timeout_costs_no_connection_and_is_a_conflict,
    what_nothing_explains_is_told_after_three_tries,
    the_number_is_read_in_any_language,
    each_number_says_what_to_do,
);

/// Makes the first so many updates of the table fail with an error number. What counts them is not rolled back.
fn refuse_updates(database: &Database, number: u32, times: u32) {
    database.run("DROP TRIGGER IF EXISTS refuse; DROP TABLE IF EXISTS tries");
    database.run("CREATE TABLE tries (id bigint AUTO_INCREMENT PRIMARY KEY)");
    database.run(&format!(
        "CREATE TRIGGER refuse BEFORE UPDATE ON task_leases FOR EACH ROW BEGIN INSERT INTO tries VALUES (NULL); \
         IF LAST_INSERT_ID() <= {times} THEN \
         SIGNAL SQLSTATE 'HY000' SET MESSAGE_TEXT = 'Verklemmung', MYSQL_ERRNO = {number}; END IF; END"
    ));
}

/// How many updates were tried since.
fn tries(database: &Database) -> u64 {
    let rows = database.run("INSERT INTO tries VALUES (NULL); SELECT LAST_INSERT_ID() - 1");
    rows[0].parse().unwrap()
}

async fn conflicts_are_retried_as_long_as_there_is_time(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let mut held = claim("job");
    repo.acquire(&held).await.unwrap();
    for number in [1020, 1205, 1213] {
        refuse_updates(&database, number, 20);
        assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed, "{number}");
        assert_eq!(tries(&database), 21, "{number}");
    }

    refuse_updates(&database, 1213, 1_000_000);
    held.limit = Duration::from_millis(500);
    // When the limit falls into a try, that one may yet execute, and it is a timeout. Mostly it falls into a pause.
    for _ in 0..20 {
        let error = repo.renew(&held).await.unwrap_err();
        if error.kind() == RepoErrorKind::Conflict {
            assert!(!error.may_have_executed());
            return;
        }
        assert_eq!(error.kind(), RepoErrorKind::Timeout, "{}", chain(&error));
        assert!(error.may_have_executed());
    }
    panic!("never told that it was a conflict");
}

/// A real one: the other transaction holds the row, has changed more than we have, and wants what we hold.
async fn a_deadlock_is_retried(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    database.run(
        "CREATE TABLE other (id int PRIMARY KEY, n int) ENGINE = InnoDB; INSERT INTO other VALUES (1, 0); \
         CREATE TABLE ballast (id int AUTO_INCREMENT PRIMARY KEY, n int) ENGINE = InnoDB",
    );
    database.run(
        "CREATE TRIGGER crosses BEFORE UPDATE ON task_leases FOR EACH ROW UPDATE other SET n = n + 1 WHERE id = 1",
    );
    let mut other = database.sql().await;
    other.query_drop("BEGIN").await.unwrap();
    // Heavier than a renewal, so that the renewal is the one to be rolled back.
    other
        .query_drop("INSERT INTO ballast (n) VALUES (1), (2), (3), (4), (5), (6), (7), (8)")
        .await
        .unwrap();
    other
        .query_drop("UPDATE other SET n = n + 1 WHERE id = 1")
        .await
        .unwrap();
    let (renewer, claim) = (repo.clone(), held.clone());
    let renewing = tokio::spawn(async move { renewer.renew(&claim).await.unwrap() });
    // The renewal has its own row and waits for the other's.
    // MySQL looks anew only if nobody has asked for a tenth of a second.
    let waiting = "DO SLEEP(0.2); SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
    let waits = async {
        while database.run(waiting).pop().unwrap() == "0" {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(4), waits)
        .await
        .expect("it waits for the other's row");
    other
        .query_drop("UPDATE task_leases SET note = 'x' WHERE name = 'job'")
        .await
        .unwrap();
    other.query_drop("COMMIT").await.unwrap();
    assert_eq!(renewing.await.unwrap(), Renew::Renewed);
}

/// Of the application's own sessions: the connection is sound and stays in its pool. Real waits of a second, the least that the
/// server knows.
async fn a_lock_timeout_costs_no_connection_and_is_a_conflict(dialect: Dialect) {
    let (database, _) = Database::migrated(dialect).await;
    let pool = pool(&database.url, 1, "SET innodb_lock_wait_timeout = 1");
    let repo = MysqlRepo::new(pool.clone()).unwrap();
    let mut held = claim("job");
    repo.acquire(&held).await.unwrap();
    let mut locker = database.sql().await;
    locker.query_drop("BEGIN").await.unwrap();
    locker.query_drop("SELECT 1 FROM task_leases FOR UPDATE").await.unwrap();
    held.limit = Duration::from_millis(2_500);
    let error = repo.renew(&held).await.unwrap_err();
    assert!(
        matches!(error.kind(), RepoErrorKind::Conflict | RepoErrorKind::Timeout),
        "{}",
        chain(&error)
    );
    locker.query_drop("COMMIT").await.unwrap();
    let sessions = database.sessions();
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    locker.query_drop("BEGIN").await.unwrap();
    locker.query_drop("SELECT 1 FROM task_leases FOR UPDATE").await.unwrap();
    let (other, claim) = (repo.clone(), held.clone());
    let renewing = tokio::spawn(async move { other.renew(&claim).await });
    locker.query_drop("DO SLEEP(1.5)").await.unwrap();
    locker.query_drop("COMMIT").await.unwrap();
    assert_eq!(renewing.await.unwrap().unwrap(), Renew::Renewed, "it was tried again");
    assert_eq!(pool.status().size, 1);
    assert!(!sessions.is_empty());
}

async fn what_nothing_explains_is_told_after_three_tries(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    refuse_updates(&database, 1114, 1_000);
    let error = repo.renew(&held).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Other, "{}", chain(&error));
    assert!(
        !error.may_have_executed(),
        "the session lives, so the statement was rolled back"
    );
    assert!(chain(&error).contains("Verklemmung"), "{}", chain(&error));
    assert_eq!(tries(&database), 3);
}

async fn the_number_is_read_in_any_language(dialect: Dialect) {
    let database = Database::empty(dialect);
    let pool = pool(&database.url, 1, "SET lc_messages = 'de_DE'");
    let repo = MysqlRepo::new(pool.clone()).unwrap();
    let error = repo.acquire(&claim("job")).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::SchemaMissing, "{}", chain(&error));
    assert_eq!(pool.status().size, 1, "the session is sound");
}

async fn each_number_says_what_to_do(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    for (number, kind) in [
        (1047, RepoErrorKind::Unavailable),
        (1142, RepoErrorKind::Denied),
        (1146, RepoErrorKind::SchemaMissing),
        (1290, RepoErrorKind::ReadOnly),
        (1406, RepoErrorKind::SchemaMismatch),
        (1792, RepoErrorKind::ReadOnly),
        (1836, RepoErrorKind::ReadOnly),
    ] {
        refuse_updates(&database, number, 1_000);
        let error = repo.renew(&held).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{number}: {}", chain(&error));
        // A node of Galera may have sent it to the others.
        assert_eq!(
            error.may_have_executed(),
            kind == RepoErrorKind::Unavailable,
            "{number}"
        );
        assert_eq!(tries(&database), 1, "{number}");
    }
    database.run("DROP TRIGGER refuse");
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
}

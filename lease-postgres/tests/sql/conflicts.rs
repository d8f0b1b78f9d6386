//! L9 and L10 where the server refuses a statement: what is tried again, how often, and what is said in the end.

use std::time::Duration;

use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use lease_core::{Acquire, Renew, Repo, RepoErrorKind};
use lease_postgres::PostgresRepo;

use crate::support::{Database, chain, claim};

/// Makes the first so many updates of the table fail with an error code. The sequence counts over rollbacks.
fn refuse_updates(database: &Database, code: &str, times: u32) {
    database.run(&format!(
        "CREATE SEQUENCE tries; \
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
           IF nextval('tries') <= {times} THEN RAISE EXCEPTION 'Verklemmung' USING ERRCODE = '{code}'; END IF; \
           RETURN new; END $$; \
         CREATE TRIGGER refuse BEFORE UPDATE ON task_leases FOR EACH ROW EXECUTE FUNCTION refuse()"
    ));
}

async fn tries(database: &Database) -> i64 {
    let sql = database.sql().await;
    let row = sql.query_one("SELECT last_value FROM tries", &[]).await;
    row.unwrap().get(0)
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn serialization_failures_are_retried_as_long_as_there_is_time() {
    let (database, repo) = Database::migrated().await;
    let mut held = claim("job");
    repo.acquire(&held).await.unwrap();
    refuse_updates(&database, "40001", 20);
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    assert_eq!(tries(&database).await, 21);

    database.run("ALTER SEQUENCE tries RESTART; ALTER SEQUENCE tries INCREMENT -1 MINVALUE -1000000");
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

/// The driver drops the code of a deadlock, and the text may be in any language.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_deadlock_is_retried_whatever_language_it_is_told_in() {
    let (database, repo) = Database::migrated().await;
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    refuse_updates(&database, "40P01", 2);
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    assert_eq!(tries(&database).await, 3);
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn what_nothing_explains_is_told_after_three_tries() {
    let (database, repo) = Database::migrated().await;
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    refuse_updates(&database, "53100", 1_000);
    let error = repo.renew(&held).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Other);
    assert!(
        !error.may_have_executed(),
        "the session lives, so the statement was rolled back"
    );
    assert!(chain(&error).contains("Verklemmung"), "{}", chain(&error));
    assert_eq!(tries(&database).await, 3);
}

/// A lock timeout of the application's own sessions: the connection is sound and stays in its pool.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_lock_timeout_costs_no_connection() {
    let (database, _) = Database::migrated().await;
    let mut config = ManagerConfig::<AsyncPgConnection>::default();
    config.custom_setup = Box::new(|url| {
        let url = url.to_owned();
        Box::pin(async move {
            let mut connection = AsyncPgConnection::establish(&url).await?;
            let set = connection.batch_execute("SET lock_timeout = 20");
            set.await.map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
            Ok(connection)
        })
    });
    let manager = AsyncDieselConnectionManager::new_with_config(&database.url, config);
    let pool = Pool::builder(manager).max_size(1).build().unwrap();
    let repo = PostgresRepo::new(pool.clone()).unwrap();
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    let mut locker = database.sql().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("SELECT 1 FROM task_leases FOR UPDATE")
        .await
        .unwrap();
    let error = repo.renew(&held).await.unwrap_err();
    assert!(!error.may_have_executed(), "{}", chain(&error));
    assert_eq!(pool.status().size, 1);
    lock.commit().await.unwrap();
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
}

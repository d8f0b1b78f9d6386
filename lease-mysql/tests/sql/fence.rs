//! Fences: a stale holder writes nothing, and nobody takes over while one is open.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl, SimpleAsyncConnection};
use lease_core::{Acquire, Guard, Lease, Repo};
use lease_mysql::MysqlRepo;
use lease_mysql::fence::{self, FenceError};
use lease_testkit::servers::Dialect;
use mysql_async::prelude::Queryable;
use tokio::time::timeout;

use crate::support::{Database, claim, on_both};

const S: Duration = Duration::from_secs(1);

on_both!(
    the_present_holder_writes_and_a_stale_one_does_not,
    an_open_fence_holds_off_a_takeover_and_a_renewal_waits,
    without_a_transaction_it_is_refused,
    the_text_is_for_other_drivers,
);

async fn setup(dialect: Dialect) -> (Database, MysqlRepo, AsyncMysqlConnection) {
    let (database, repo) = Database::migrated(dialect).await;
    database.run("CREATE TABLE accounts (balance bigint NOT NULL) ENGINE = InnoDB; INSERT INTO accounts VALUES (0)");
    let connection = AsyncMysqlConnection::establish(&database.url).await.unwrap();
    (database, repo, connection)
}

async fn taken(repo: &MysqlRepo) -> Guard {
    Lease::new(repo.clone())
        .try_acquire("job", 60 * S)
        .await
        .unwrap()
        .unwrap()
}

async fn add(connection: &mut AsyncMysqlConnection, guard: &Guard) -> Result<(), FenceError> {
    let held = guard.held().clone();
    connection
        .transaction(async |connection| {
            diesel::sql_query("UPDATE accounts SET balance = balance + 1")
                .execute(connection)
                .await?;
            fence::check(connection, &held).await
        })
        .await
}

fn balance(database: &Database) -> String {
    database.run("SELECT balance FROM accounts").remove(0)
}

/// C46, the half about who passes.
async fn the_present_holder_writes_and_a_stale_one_does_not(dialect: Dialect) {
    let (database, repo, mut connection) = setup(dialect).await;
    let guard = taken(&repo).await;
    add(&mut connection, &guard).await.unwrap();
    assert_eq!(balance(&database), "1");
    database.age(120 * S);
    let stale = add(&mut connection, &guard).await.unwrap_err();
    assert!(matches!(stale, FenceError::Stale { .. }), "expired: {stale:?}");
    let next = claim("job");
    assert!(matches!(repo.acquire(&next).await.unwrap(), Acquire::Granted(_)));
    let stale = add(&mut connection, &guard).await.unwrap_err();
    assert!(matches!(stale, FenceError::Stale { .. }), "taken over: {stale:?}");
    repo.release(&next).await.unwrap();
    let stale = add(&mut connection, &guard).await.unwrap_err();
    assert!(
        matches!(stale, FenceError::Stale { .. }),
        "released by another: {stale:?}"
    );
    assert_eq!(balance(&database), "1");
    assert!(stale.to_string().contains("job"), "{stale}");
}

/// C46, the half about what waits. Real waits, of half a second in which nothing may happen.
async fn an_open_fence_holds_off_a_takeover_and_a_renewal_waits(dialect: Dialect) {
    let (database, repo, mut connection) = setup(dialect).await;
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    let open = format!("BEGIN; {}", fence_for(&repo, &database, &held));
    connection.batch_execute(&open).await.unwrap();
    let (other, claim_of_it) = (repo.clone(), held.clone());
    let renewing = tokio::spawn(async move { other.renew(&claim_of_it).await });
    let mut sql = database.sql().await;
    sql.query_drop("DO SLEEP(0.5)").await.unwrap();
    assert!(!renewing.is_finished(), "it waits for the fence");
    connection.batch_execute("COMMIT").await.unwrap();
    assert_eq!(
        timeout(5 * S, renewing).await.unwrap().unwrap().unwrap(),
        lease_core::Renew::Renewed
    );

    connection.batch_execute(&open).await.unwrap();
    // It runs out while the fence is open: moved by the fence's own transaction, which alone can.
    connection
        .batch_execute("UPDATE task_leases SET expires_at = UTC_TIMESTAMP(6)")
        .await
        .unwrap();
    // Nobody sees that before the commit, and then somebody takes it.
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Busy(Some(_))
    ));
    connection.batch_execute("COMMIT").await.unwrap();
    connection
        .batch_execute("BEGIN; SELECT 1 FROM task_leases FOR UPDATE")
        .await
        .unwrap();
    // Whose limit it does not use up: it waits for nobody.
    let mut next = claim("job");
    next.limit = 60 * S;
    let refused = timeout(4 * S, repo.acquire(&next)).await.unwrap().unwrap();
    assert!(matches!(refused, Acquire::Busy(None)), "{refused:?}");
    connection.batch_execute("COMMIT").await.unwrap();
    assert!(matches!(repo.acquire(&next).await.unwrap(), Acquire::Granted(_)));
}

/// The fence's statement with its values in it.
fn fence_for(repo: &MysqlRepo, database: &Database, held: &lease_core::Claim) -> String {
    let token = database.run("SELECT token FROM task_leases").remove(0);
    let mut text = repo.fence_sql();
    for value in [
        format!("'{}'", held.name.as_str()),
        format!("'{}'", held.holder.as_str()),
        token,
    ] {
        text = text.replacen('?', &value, 1);
    }
    text
}

async fn without_a_transaction_it_is_refused(dialect: Dialect) {
    let (_database, repo, mut connection) = setup(dialect).await;
    let guard = taken(&repo).await;
    let refused = fence::check(&mut connection, guard.held()).await.unwrap_err();
    assert!(matches!(refused, FenceError::NoTransaction));
    assert!(refused.source().is_none());
}

async fn the_text_is_for_other_drivers(dialect: Dialect) {
    let database = Database::for_table(dialect, "My Leases");
    let repo = Arc::new(database.repo().await);
    repo.migrate().await.unwrap();
    let guard = Lease::new((*repo).clone())
        .try_acquire("job", 60 * S)
        .await
        .unwrap()
        .unwrap();
    let held = guard.held();
    let mut sql = database.sql().await;
    let mut values = (held.name().as_str(), held.holder().as_str(), held.token().get());
    let found: Option<i64> = sql.exec_first(repo.fence_sql(), values).await.unwrap();
    assert_eq!(found, Some(1));
    values.2 -= 1;
    let found: Option<i64> = sql.exec_first(repo.fence_sql(), values).await.unwrap();
    assert_eq!(found, None);
}

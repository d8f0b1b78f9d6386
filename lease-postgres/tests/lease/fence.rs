//! C46, and stale holders: a fence in the write's own transaction.

use std::time::Duration;

use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use lease_core::{
    Acquire, Claim, Evict, Held, Inspect, Label, Lease, LeaseName, Note, OnLost, Options, Outcome, Repo, Wait,
};
use lease_postgres::PostgresRepo;
use lease_postgres::fence::{self, FenceError};

use crate::child::{Part, Process};
use crate::world::{TTL, World, ms, now, secs, sleep, until};

async fn connection(world: &World) -> AsyncPgConnection {
    AsyncPgConnection::establish(world.database.url()).await.unwrap()
}

fn claim() -> Claim {
    let holder = Label::new("other").unwrap().new_holder();
    Claim::new(LeaseName::from_static("job"), holder, TTL)
}

async fn is_stale(connection: &mut AsyncPgConnection, held: &Held) -> bool {
    let checked = connection
        .transaction(async |connection| fence::check(connection, held).await)
        .await;
    match checked {
        Ok(()) => false,
        Err(FenceError::Stale { name, token }) => {
            assert_eq!((&name, token), (held.name(), held.token()));
            true
        }
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c46_an_open_fence_lets_renewals_pass_and_holds_off_takeover_and_purge() {
    let world = World::shared().await;
    let (lease, other) = (world.pod().await, world.repo().await);
    let mut connection = connection(&world).await;
    let guard = lease.acquire("job", TTL, Wait::Forever).await.unwrap();
    let held = guard.held().clone();
    let checked: Result<(), FenceError> = connection
        .transaction(async |connection| {
            fence::check(connection, &held).await?;
            let end = now() + TTL * 2;
            while now() < end {
                assert!(held.is_live() && held.stop().is_none(), "renewals pass");
                sleep(ms(50)).await;
            }
            // It expires under the open fence, as it does for a process that is stopped here.
            let expire = "UPDATE task_leases SET expires_at = clock_timestamp() - interval '1 hour'";
            world.database.sql(expire).unwrap();
            assert_eq!(
                other.acquire(&claim()).await.unwrap(),
                Acquire::Busy(None),
                "no takeover"
            );
            assert_eq!(other.purge(Duration::ZERO).await.unwrap(), 0, "no purge");
            Ok(())
        })
        .await;
    checked.unwrap();
    assert!(
        matches!(other.acquire(&claim()).await.unwrap(), Acquire::Granted(_)),
        "the fence is gone"
    );
    assert!(is_stale(&mut connection, &held).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c46_an_open_fence_holds_off_an_eviction_that_frees_at_once() {
    let world = World::shared().await;
    let (lease, other) = (world.pod().await, world.repo().await);
    let mut connection = connection(&world).await;
    let guard = lease.acquire("job", TTL, Wait::Forever).await.unwrap();
    let held = guard.held().clone();
    let evicting = connection
        .transaction(async |connection| {
            fence::check(connection, &held).await?;
            let (by, why) = (Label::new("operator").unwrap(), Note::new("a test").unwrap());
            let name = held.name().clone();
            let evicting = tokio::spawn(async move { other.evict_now(&name, &by, &why).await });
            sleep(TTL / 2).await;
            assert!(!evicting.is_finished(), "the write comes first");
            assert!(
                held.is_live() && held.stop().is_none(),
                "and renewals pass that wait too"
            );
            Ok::<_, FenceError>(evicting)
        })
        .await
        .unwrap();
    assert!(matches!(evicting.await.unwrap().unwrap(), Evict::Evicted { .. }));
    assert!(is_stale(&mut connection, &held).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_fence_outside_a_transaction_is_refused_and_a_released_lease_is_stale() {
    let world = World::shared().await;
    let lease = world.pod().await;
    let mut connection = connection(&world).await;
    let guard = lease.acquire("job", TTL, Wait::Forever).await.unwrap();
    let held = guard.held().clone();
    let error = fence::check(&mut connection, &held).await.unwrap_err();
    assert!(matches!(error, FenceError::NoTransaction), "{error:?}");
    assert!(!is_stale(&mut connection, &held).await);
    guard.release().await.unwrap();
    assert!(is_stale(&mut connection, &held).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn the_fence_of_a_table_of_another_name_is_that_tables() {
    let world = World::shared().await;
    let repo = world.repo().await.table("Other").unwrap();
    repo.migrate().await.unwrap();
    let guard = Lease::new(repo.clone())
        .acquire("job", TTL, Wait::Forever)
        .await
        .unwrap();
    let held = guard.held().clone();
    let mut connection = connection(&world).await;
    assert!(is_stale(&mut connection, &held).await, "task_leases has no such row");
    let checked = connection.transaction(async |connection| repo.check_fence(connection, &held).await);
    checked.await.unwrap();
    let sql = world.plain().await;
    let rows = sql
        .query(
            &repo.fence_sql(),
            &[&"job", &held.holder().as_str(), &held.token().get()],
        )
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
}

const TEST: &str = "fence::a_holder_stopped_past_its_expiry_writes_nothing_stale";
const SHORT: Duration = ms(300);

/// Rounds in which a process that writes all the time is stopped past the expiry of its lease and goes on. Answers how
/// many of them another took the lease over in, and how many stale writes were committed.
async fn rounds(rounds: usize, fenced: &str) -> (usize, usize) {
    let world = World::shared().await;
    let create = "CREATE TABLE written (token bigint NOT NULL, current bigint NOT NULL)";
    world.database.sql(create).unwrap();
    let lease = world.pod().await;
    let writer = Process::start(&[], TEST, world.database.url(), fenced);
    let mut takeovers = 0;
    let written = || world.database.sql("SELECT token::text FROM written").unwrap().len();
    for _ in 0..rounds {
        let before = written();
        until("it writes", secs(20), || written() > before).await;
        writer.signal("STOP");
        // An open fence holds us off for as long as it is stopped.
        let successor = lease.acquire("job", SHORT, Wait::For(SHORT * 2)).await;
        takeovers += usize::from(successor.is_ok());
        writer.signal("CONT");
        // With us in the row, whatever it writes now is stale.
        sleep(ms(30)).await;
        drop(successor);
    }
    let stale = world
        .database
        .sql("SELECT 1 FROM written WHERE token < current")
        .unwrap()
        .len();
    (takeovers, stale)
}

/// Writes under its lease until somebody refuses that, whatever it is told.
async fn writes(part: Part) {
    Part::ends_with_its_parent();
    let lease = Lease::new(PostgresRepo::connect(&part.url).await.unwrap());
    let fenced = part.text == "fenced";
    loop {
        let options = Options::from(SHORT).on_lost(OnLost::SignalOnly);
        let mut connection = AsyncPgConnection::establish(&part.url).await.unwrap();
        let outcome = lease.run("job", options, async |held| {
            let started = now();
            // Without a fence it has no end by itself.
            while fenced || now().since(started) < SHORT * 4 {
                if write(&mut connection, &held, fenced).await.is_err() {
                    break;
                }
                // So that it is mostly stopped between two writes.
                sleep(ms(8)).await;
            }
        });
        if matches!(outcome.await.unwrap(), Outcome::Skipped(_)) {
            sleep(ms(10)).await;
        }
    }
}

async fn write(connection: &mut AsyncPgConnection, held: &Held, fenced: bool) -> Result<(), FenceError> {
    let text = format!(
        "INSERT INTO written SELECT {}, token FROM task_leases WHERE name = 'job'",
        held.token().get()
    );
    connection
        .transaction(async |connection| {
            if fenced {
                fence::check(connection, held).await?;
            }
            sleep(ms(2)).await;
            diesel::sql_query(&text).execute(connection).await?;
            Ok(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_holder_stopped_past_its_expiry_writes_nothing_stale() {
    if let Some(part) = Part::of_this_process() {
        return writes(part).await;
    }
    let (takeovers, stale) = rounds(100, "fenced").await;
    println!("{takeovers} takeovers in 100 rounds, {stale} stale writes");
    assert_eq!(stale, 0);
    // In the others the fence was open while it was stopped.
    assert!(takeovers >= 20, "{takeovers} takeovers");
    let (takeovers, stale) = rounds(20, "not fenced").await;
    assert!(
        takeovers >= 5 && stale > 0,
        "the test would notice: {takeovers} takeovers, {stale} stale writes"
    );
}

/// The recipe of the docs: what is written to refuses a smaller token by itself.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn the_recipe_for_a_fenced_table_refuses_a_smaller_token() {
    let docs = include_str!("../../src/docs.md");
    let recipe = docs
        .split("```sql\n-- A fenced table")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let world = World::shared().await;
    let mut connection = connection(&world).await;
    connection
        .batch_execute(&format!("-- A fenced table{recipe}"))
        .await
        .unwrap();
    let write = |balance: i64, token: i64| {
        format!("UPDATE accounts SET balance = {balance}, lease_token = {token} WHERE id = 1")
    };
    connection
        .batch_execute("INSERT INTO accounts (id, balance, lease_token) VALUES (1, 0, 5)")
        .await
        .unwrap();
    connection.batch_execute(&write(10, 5)).await.unwrap();
    connection.batch_execute(&write(20, 7)).await.unwrap();
    let error = connection.batch_execute(&write(30, 6)).await.unwrap_err();
    assert!(error.to_string().contains("stale"), "{error}");
    let balance = world.database.sql("SELECT balance::text FROM accounts").unwrap();
    assert_eq!(balance, ["20"]);
}

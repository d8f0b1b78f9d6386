//! A repo on the application's own pool: what it leaves alone, and what depends on the application.

use std::error::Error;
use std::time::Duration;

use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use futures_util::future::join_all;
use lease_core::{Acquire, Held, Inspect, Lease, Outcome, Release, Renew, Repo, RepoErrorKind, Stop};
use lease_postgres::PostgresRepo;

use crate::support::{Database, block_on, chain, claim};

fn pool(database: &Database, size: usize) -> Pool<AsyncPgConnection> {
    let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new(&database.url);
    Pool::builder(manager).max_size(size).build().unwrap()
}

#[derive(diesel::QueryableByName, PartialEq, Debug)]
struct Text {
    #[diesel(sql_type = diesel::sql_types::Text)]
    text: String,
}

async fn settings(pool: &Pool<AsyncPgConnection>) -> Vec<Text> {
    let all = "SELECT name || '=' || setting AS text FROM pg_settings ORDER BY name";
    diesel::sql_query(all)
        .get_results(&mut pool.get().await.unwrap())
        .await
        .unwrap()
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn everything_works_and_session_settings_are_left_as_found() {
    let database = Database::empty();
    let pool = pool(&database, 1);
    let before = settings(&pool).await;
    let repo = PostgresRepo::new(pool.clone()).unwrap();
    repo.migrate().await.unwrap();
    repo.check_schema().await.unwrap();
    let held = claim("job");
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    // C5: not won, however often it is asked.
    for _ in 0..3 {
        assert!(matches!(
            repo.clone().acquire(&claim("job")).await.unwrap(),
            Acquire::Busy(Some(_))
        ));
    }
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    assert_eq!(repo.list().await.unwrap().len(), 1);
    assert_eq!(repo.release(&held).await.unwrap(), Release::Released);
    assert_eq!(settings(&pool).await, before);
    assert_eq!(pool.status().size, 1, "the connection was kept all along");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn the_number_of_connections_is_that_of_our_own_pool_alone() {
    let (database, repo) = Database::migrated().await;
    let repo = repo.connections(2).unwrap();
    let claims: Vec<_> = (0..8).map(|number| claim(&format!("job-{number}"))).collect();
    for answer in join_all(claims.iter().map(|claim| repo.acquire(claim))).await {
        assert!(matches!(answer.unwrap(), Acquire::Granted(_)));
    }
    let sessions = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'lease'";
    let sessions = database.sql().await.query(sessions, &[]).await.unwrap();
    assert_eq!(sessions.len(), 2);
    let foreign = PostgresRepo::new(pool(&database, 1)).unwrap();
    for error in [repo.connections(0).unwrap_err(), foreign.connections(2).unwrap_err()] {
        assert_eq!(error.kind(), RepoErrorKind::Config, "{}", chain(&error));
    }
}

/// C9, the half that concerns the repo: no connection to be had is said within the limit, and nothing was sent.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_pool_kept_busy_by_the_application_is_a_timeout() {
    let (database, own) = Database::migrated().await;
    let pool = pool(&database, 1);
    let repo = PostgresRepo::new(pool.clone()).unwrap();
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    let kept = pool.get().await.unwrap();
    let mut hurried = held.clone();
    hurried.limit = Duration::from_millis(200);
    let error = repo.renew(&hurried).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Timeout);
    assert!(!error.may_have_executed());
    assert_eq!(
        own.renew(&held).await.unwrap(),
        Renew::Renewed,
        "a pool of its own does not depend on it"
    );
    drop(kept);
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
}

#[test]
fn outside_a_runtime_it_is_a_config_error() {
    let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new("postgres://u@h/db");
    let error = PostgresRepo::new(Pool::builder(manager).build().unwrap()).unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Config);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_runtime_that_is_gone_is_unavailable_and_says_so() {
    let database = block_on(async { Database::migrated().await.0 });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let repo = PostgresRepo::with_handle(pool(&database, 1), runtime.handle().clone());
    block_on(async {
        repo.acquire(&claim("one")).await.unwrap();
        runtime.shutdown_background();
        let error = repo.acquire(&claim("two")).await.unwrap_err();
        assert_eq!(error.kind(), RepoErrorKind::Unavailable);
        assert!(
            error.source().unwrap().to_string().contains("has shut down"),
            "{}",
            chain(&error)
        );
    });
}

/// Workers blocked by the application stop a renewal on its pool, but not the answer that it is overdue. A real wait.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_runtime_that_is_blocked_is_a_timeout() {
    let database = block_on(async { Database::migrated().await.0 });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let repo = PostgresRepo::with_handle(pool(&database, 1), runtime.handle().clone());
    block_on(async {
        let mut held = claim("job");
        repo.acquire(&held).await.unwrap();
        let (blocked, wait) = std::sync::mpsc::channel::<()>();
        runtime.spawn(async move { wait.recv() });
        held.limit = Duration::from_millis(200);
        assert_eq!(repo.renew(&held).await.unwrap_err().kind(), RepoErrorKind::Timeout);
        drop(blocked);
        held.limit = Duration::from_secs(5);
        assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    });
}

/// L5: never in a caller's transaction.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_connection_inside_a_transaction_is_refused() {
    let (database, _) = Database::migrated().await;
    let mut config = ManagerConfig::<AsyncPgConnection>::default();
    config.custom_setup = Box::new(|url| {
        let url = url.to_owned();
        Box::pin(async move {
            let mut connection = AsyncPgConnection::establish(&url).await?;
            connection
                .begin_test_transaction()
                .await
                .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
            Ok(connection)
        })
    });
    let manager = AsyncDieselConnectionManager::new_with_config(&database.url, config);
    let repo = PostgresRepo::new(Pool::builder(manager).build().unwrap()).unwrap();
    let error = repo.acquire(&claim("job")).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Config, "{}", chain(&error));
    assert!(!error.may_have_executed());
}

/// L8: a statement that got no answer costs the connection its place, and the next caller gets right answers.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_statement_without_an_answer_costs_its_connection() {
    let (database, own) = Database::migrated().await;
    let pool = pool(&database, 1);
    let repo = PostgresRepo::new(pool.clone()).unwrap();
    let mut held = claim("job");
    repo.acquire(&held).await.unwrap();
    let mut locker = database.sql().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("SELECT 1 FROM task_leases FOR UPDATE")
        .await
        .unwrap();
    held.limit = Duration::from_secs(1);
    for repo in [&repo, &own] {
        let error = repo.renew(&held).await.unwrap_err();
        assert_eq!(error.kind(), RepoErrorKind::Timeout);
        assert!(error.may_have_executed());
    }
    assert_eq!(pool.status().size, 0);
    lock.commit().await.unwrap();
    held.limit = Duration::from_secs(5);
    for repo in [&repo, &own] {
        assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
        assert!(matches!(
            repo.acquire(&claim("job")).await.unwrap(),
            Acquire::Busy(Some(_))
        ));
    }
    let mut connection = pool.get().await.unwrap();
    connection.batch_execute("SELECT 1").await.unwrap();
}

/// C9. Real waits: the work keeps the application's only connection for twice the ttl.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn work_that_keeps_the_only_connection_is_told_in_time_and_with_connect_keeps_its_lease() {
    let (database, own) = Database::migrated().await;
    let ttl = Duration::from_secs(2);
    let work = |lease: Lease, pool: Pool<AsyncPgConnection>, name: &'static str| async move {
        let ran = lease.run(name, ttl, async move |_held: Held| {
            let mut connection = pool.get().await.unwrap();
            connection.batch_execute("SELECT pg_sleep(4)").await.unwrap();
        });
        ran.await.unwrap()
    };
    let (kept, lost) = (pool(&database, 1), pool(&database, 1));
    let on_its_pool = PostgresRepo::new(lost.clone()).unwrap();
    let (kept, lost) = futures_util::future::join(
        work(Lease::new(own), kept, "by connect"),
        work(Lease::new(on_its_pool), lost, "on the pool"),
    )
    .await;
    assert!(matches!(&kept, Outcome::Ran(ran) if ran.stop.is_none()), "{kept:?}");
    let Outcome::Dropped {
        stop: Stop::Overdue { last_error },
        ..
    } = &lost
    else {
        panic!("{lost:?}")
    };
    assert_eq!(
        last_error.as_ref().map(|error| error.kind()),
        Some(RepoErrorKind::Timeout)
    );
}

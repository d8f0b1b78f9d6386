//! A repo on the application's own pool: what it leaves alone, and what depends on the application.

use std::error::Error;
use std::time::Duration;

use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl, SimpleAsyncConnection};
use lease_core::{Acquire, Evict, Inspect, Label, Note, Release, Renew, Repo, RepoErrorKind};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::Dialect;
use mysql_async::prelude::Queryable;

use crate::support::{AS_IT_IS, Database, block_on, chain, claim, on_both, opts, pool};

on_both!(
    everything_works_and_session_settings_are_left_as_found,
    answers_do_not_hang_on_how_rows_are_counted,
    without_autocommit_each_step_is_a_transaction_of_its_own,
    what_somebody_left_open_is_not_committed,
    a_pool_kept_busy_by_the_application_is_a_timeout,
    a_connection_inside_a_transaction_is_refused,
    a_statement_without_an_answer_costs_its_connection,
    the_number_of_connections_is_that_of_our_own_pool_alone,
);

#[derive(diesel::QueryableByName, PartialEq, Debug)]
struct Text {
    #[diesel(sql_type = diesel::sql_types::Text)]
    text: String,
}

async fn settings(pool: &Pool<AsyncMysqlConnection>) -> Vec<Text> {
    let mut connection = pool.get().await.unwrap();
    let mut all = Vec::new();
    for setting in [
        "autocommit",
        "time_zone",
        "sql_mode",
        "innodb_lock_wait_timeout",
        "lock_wait_timeout",
        "lease_n",
        "lease_e1",
        "lease_m2",
        "lc_messages",
    ] {
        let at = if setting.starts_with("lease") { "@" } else { "@@" };
        let text = format!("SELECT CONCAT('{setting}=', COALESCE(CAST({at}{setting} AS CHAR), 'null')) AS text");
        let rows: Vec<Text> = diesel::sql_query(text).load(&mut connection).await.unwrap();
        all.extend(rows);
    }
    all
}

/// All that a repo can do, with the right answers.
async fn everything(repo: &MysqlRepo) {
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
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    let mut shorter = held.clone();
    shorter.ttl = Duration::from_secs(1);
    assert_eq!(
        repo.renew(&shorter).await.unwrap(),
        Renew::Renewed,
        "it changes nothing"
    );
    assert!(matches!(repo.renew(&claim("job")).await.unwrap(), Renew::Lost(_)));
    assert_eq!(repo.release(&claim("job")).await.unwrap(), Release::NotHeld);
    assert_eq!(repo.list().await.unwrap().len(), 1);
    let (by, why) = (Label::new("ops").unwrap(), Note::new("a test").unwrap());
    assert!(
        matches!(repo.evict(&held.name, &by, &why).await.unwrap(), Evict::Evicted { free_in } if free_in > Duration::from_secs(20))
    );
    assert!(matches!(
        repo.evict_now(&held.name, &by, &why).await.unwrap(),
        Evict::Evicted { .. }
    ));
    assert_eq!(repo.evict(&held.name, &by, &why).await.unwrap(), Evict::NotHeld);
    for _ in 0..2 {
        repo.pause(&held.name, Duration::from_secs(60), &by, &why)
            .await
            .unwrap();
    }
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Busy(Some(_))));
    assert_eq!(repo.resume(&held.name).await.unwrap(), Release::Released);
    assert_eq!(repo.resume(&held.name).await.unwrap(), Release::NotHeld);
    let next = claim("job");
    assert!(matches!(repo.acquire(&next).await.unwrap(), Acquire::Granted(_)));
    assert_eq!(repo.release(&next).await.unwrap(), Release::Released);
    let deleting = repo.clone().delete_on_release(true);
    assert!(matches!(repo.acquire(&next).await.unwrap(), Acquire::Granted(_)));
    assert_eq!(deleting.release(&next).await.unwrap(), Release::Released);
    assert!(repo.get(&next.name).await.unwrap().is_none());
}

/// Whatever an application has set its sessions to.
const SESSIONS: [&str; 7] = [
    AS_IT_IS,
    "SET autocommit = 0",
    "SET time_zone = '+09:00'",
    "SET sql_mode = ''",
    "SET sql_mode = 'ANSI'",
    "SET sql_mode = 'TRADITIONAL,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,PAD_CHAR_TO_FULL_LENGTH'",
    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE; SET autocommit = 0",
];

async fn everything_works_and_session_settings_are_left_as_found(dialect: Dialect) {
    for setup in SESSIONS {
        let database = Database::empty(dialect);
        let pool = pool(&database.url, 1, setup);
        let before = settings(&pool).await;
        let repo = MysqlRepo::new(pool.clone()).unwrap();
        // One that fails, too.
        let error = repo.acquire(&claim("job")).await.unwrap_err();
        assert_eq!(error.kind(), RepoErrorKind::SchemaMissing, "{}", chain(&error));
        everything(&repo).await;
        assert_eq!(settings(&pool).await, before, "{setup}");
        assert_eq!(pool.status().size, 1, "the connection was kept all along");
    }
    if dialect == Dialect::MariaDb {
        // Assignments that are evaluated at once, and not from left to right.
        let database = Database::empty(dialect);
        let pool = pool(&database.url, 1, "SET sql_mode = 'SIMULTANEOUS_ASSIGNMENT'");
        everything(&MysqlRepo::new(pool).unwrap()).await;
    }
}

/// C5: with and without `CLIENT_FOUND_ROWS`.
async fn answers_do_not_hang_on_how_rows_are_counted(dialect: Dialect) {
    for found_rows in [false, true] {
        let database = Database::empty(dialect);
        let options = opts(&database.url).client_found_rows(found_rows);
        let mut config = diesel_async::pooled_connection::ManagerConfig::<AsyncMysqlConnection>::default();
        config.custom_setup = Box::new(move |_| {
            let options = options.clone();
            Box::pin(async move {
                let connection = mysql_async::Conn::new(options).await;
                let connection =
                    connection.map_err(|error| diesel::ConnectionError::BadConnection(error.to_string()))?;
                AsyncMysqlConnection::try_from(connection).await
            })
        });
        let manager = AsyncDieselConnectionManager::new_with_config("", config);
        let pool = Pool::builder(manager).max_size(1).build().unwrap();
        everything(&MysqlRepo::new(pool).unwrap()).await;
    }
}

/// Others see each step at once, and no lock or old snapshot is left.
async fn without_autocommit_each_step_is_a_transaction_of_its_own(dialect: Dialect) {
    let (database, own) = Database::migrated(dialect).await;
    let pool = pool(&database.url, 1, "SET autocommit = 0");
    let repo = MysqlRepo::new(pool).unwrap();
    for _ in 0..3 {
        let held = claim("job");
        assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
        assert!(
            matches!(own.acquire(&claim("job")).await.unwrap(), Acquire::Busy(Some(who)) if who.holder == held.holder.as_str())
        );
        assert_eq!(own.renew(&held).await.unwrap(), Renew::Renewed);
        assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
        assert_eq!(own.release(&held).await.unwrap(), Release::Released);
        assert!(matches!(
            repo.renew(&held).await.unwrap(),
            Renew::Lost(lease_core::Loss::Released)
        ));
        // A key that is there already: the look after it must see the row.
        let rival = claim("other");
        assert!(matches!(own.acquire(&rival).await.unwrap(), Acquire::Granted(_)));
        assert!(matches!(
            repo.acquire(&claim("other")).await.unwrap(),
            Acquire::Busy(Some(_))
        ));
        assert_eq!(own.release(&rival).await.unwrap(), Release::Released);
    }
}

/// L5: a session without autocommit, given back with a change that nobody committed, does not commit it with the lease.
async fn what_somebody_left_open_is_not_committed(dialect: Dialect) {
    let (database, _) = Database::migrated(dialect).await;
    database.run("CREATE TABLE theirs (n int) ENGINE = InnoDB");
    let pool = pool(&database.url, 1, "SET autocommit = 0");
    {
        let mut connection = pool.get().await.unwrap();
        connection.batch_execute("INSERT INTO theirs VALUES (1)").await.unwrap();
    }
    let repo = MysqlRepo::new(pool).unwrap();
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
    assert_eq!(database.run("SELECT COUNT(*) FROM theirs"), ["0"]);
}

/// C9, the half that concerns the repo: no connection to be had is said within the limit, and nothing was sent.
async fn a_pool_kept_busy_by_the_application_is_a_timeout(dialect: Dialect) {
    let (database, own) = Database::migrated(dialect).await;
    let pool = pool(&database.url, 1, AS_IT_IS);
    let repo = MysqlRepo::new(pool.clone()).unwrap();
    let mut held = claim("job");
    repo.acquire(&held).await.unwrap();
    held.limit = Duration::from_millis(200);
    let kept = pool.get().await.unwrap();
    let error = repo.renew(&held).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Timeout);
    assert!(!error.may_have_executed());
    held.limit = Duration::from_secs(5);
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
    let manager = AsyncDieselConnectionManager::<AsyncMysqlConnection>::new("mysql://u@h/db");
    let error = MysqlRepo::new(Pool::builder(manager).build().unwrap()).unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Config);
}

#[test]
#[ignore = "needs MariaDB: cargo xtask test"]
fn a_runtime_that_is_gone_is_unavailable_and_says_so() {
    let database = block_on(async { Database::migrated(Dialect::MariaDb).await.0 });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let repo = MysqlRepo::with_handle(pool(&database.url, 1, AS_IT_IS), runtime.handle().clone());
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
#[ignore = "needs MariaDB: cargo xtask test"]
fn a_runtime_that_is_blocked_is_a_timeout() {
    let database = block_on(async { Database::migrated(Dialect::MariaDb).await.0 });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let repo = MysqlRepo::with_handle(pool(&database.url, 1, AS_IT_IS), runtime.handle().clone());
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
async fn a_connection_inside_a_transaction_is_refused(dialect: Dialect) {
    let (database, _) = Database::migrated(dialect).await;
    let mut config = diesel_async::pooled_connection::ManagerConfig::<AsyncMysqlConnection>::default();
    config.custom_setup = Box::new(|url| {
        let url = url.to_owned();
        Box::pin(async move {
            let mut connection = AsyncMysqlConnection::establish(&url).await?;
            connection
                .begin_test_transaction()
                .await
                .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
            Ok(connection)
        })
    });
    let manager = AsyncDieselConnectionManager::new_with_config(&database.url, config);
    let repo = MysqlRepo::new(Pool::builder(manager).build().unwrap()).unwrap();
    let error = repo.acquire(&claim("job")).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Config, "{}", chain(&error));
    assert!(!error.may_have_executed());
}

/// L8: a statement that got no answer costs the connection its place, and the next caller gets right answers.
async fn a_statement_without_an_answer_costs_its_connection(dialect: Dialect) {
    let (database, own) = Database::migrated(dialect).await;
    let pool = pool(&database.url, 1, AS_IT_IS);
    let repo = MysqlRepo::new(pool.clone()).unwrap();
    let mut held = claim("job");
    repo.acquire(&held).await.unwrap();
    let mut locker = database.sql().await;
    locker.query_drop("BEGIN").await.unwrap();
    locker.query_drop("SELECT 1 FROM task_leases FOR UPDATE").await.unwrap();
    held.limit = Duration::from_secs(1);
    for repo in [&repo, &own] {
        let error = repo.renew(&held).await.unwrap_err();
        assert_eq!(error.kind(), RepoErrorKind::Timeout);
        assert!(error.may_have_executed());
    }
    assert_eq!(pool.status().size, 0);
    locker.query_drop("COMMIT").await.unwrap();
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

async fn the_number_of_connections_is_that_of_our_own_pool_alone(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let repo = repo.connections(2).unwrap();
    let all: Vec<_> = (0..8).map(|number| claim(&format!("job-{number}"))).collect();
    let (one, two) = tokio::join!(repo.acquire(&all[0]), repo.acquire(&all[1]));
    assert!(matches!(
        (one.unwrap(), two.unwrap()),
        (Acquire::Granted(_), Acquire::Granted(_))
    ));
    let (a, b, c, d) = tokio::join!(
        repo.acquire(&all[2]),
        repo.acquire(&all[3]),
        repo.acquire(&all[4]),
        repo.acquire(&all[5])
    );
    for answer in [a, b, c, d] {
        assert!(matches!(answer.unwrap(), Acquire::Granted(_)));
    }
    assert_eq!(database.sessions().len(), 2);
    let foreign = MysqlRepo::new(pool(&database.url, 1, AS_IT_IS)).unwrap();
    for error in [repo.connections(0).unwrap_err(), foreign.connections(2).unwrap_err()] {
        assert_eq!(error.kind(), RepoErrorKind::Config, "{}", chain(&error));
    }
}

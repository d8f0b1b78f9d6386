//! Faults by product: public futures dropped at every await point, by answers of the store; and the repo's own futures, dropped
//! at every await point and at times spread over a statement.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncMysqlConnection, SimpleAsyncConnection};
use futures_util::future::join_all;
use lease_core::{LeaseName, Renew, Repo};
use lease_mysql::MysqlRepo;
use lease_testkit::product::{Answer, Backend, Product, Public, Report, Rest, Time};
use lease_testkit::servers::Dialect;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::sync::Mutex;
use tokio::time::timeout;

mod support;
use support::{AS_IT_IS, Database, claim, pool};

/// Times over which a statement is spread.
const SPREAD: &[Rest] = &[
    Rest::Woken,
    Rest::Real(Duration::from_micros(100)),
    Rest::Real(Duration::from_micros(400)),
    Rest::Real(Duration::from_micros(1_500)),
];

/// Those that differ most in how they end. Each of them is tried on PostgreSQL.
const SOME: &[Public] = &[
    Public::JobRun,
    Public::JobTryAcquire,
    Public::GuardRelease,
    Public::ShutDown,
];

struct Server {
    repo: Tested,
    eyes: MysqlRepo,
    sql: Mutex<Conn>,
    database: Database,
}

/// The repo under test.
enum Tested {
    /// One that `connect` made, and that stays.
    Own(Arc<MysqlRepo>),
    /// A new clone of it each time, whose pool is empty.
    Cold(MysqlRepo),
    /// On the application's pool.
    Pooled(Arc<MysqlRepo>, Pool<AsyncMysqlConnection>),
}

const OWN_POOL: usize = 4;
const POOL: usize = 2;

impl Server {
    async fn new(dialect: Dialect, tested: impl AsyncFnOnce(&Database) -> Tested) -> Self {
        let (database, _) = Database::migrated(dialect).await;
        Self {
            repo: tested(&database).await,
            eyes: MysqlRepo::new(pool(&database.url, 1, AS_IT_IS)).unwrap(),
            sql: Mutex::new(database.sql().await),
            database,
        }
    }

    async fn own(dialect: Dialect) -> Self {
        Self::new(dialect, async |database| Tested::Own(Arc::new(database.repo().await))).await
    }

    async fn cold(dialect: Dialect) -> Self {
        Self::new(dialect, async |database| Tested::Cold(database.repo().await)).await
    }

    async fn pooled(dialect: Dialect) -> Self {
        Self::new(dialect, async |database| {
            let pool = pool(&database.url, POOL, AS_IT_IS);
            Tested::Pooled(Arc::new(MysqlRepo::new(pool.clone()).unwrap()), pool)
        })
        .await
    }
}

impl Backend for Server {
    type Repo = MysqlRepo;

    fn repo(&self) -> Arc<MysqlRepo> {
        match &self.repo {
            Tested::Own(repo) | Tested::Pooled(repo, _) => repo.clone(),
            Tested::Cold(repo) => Arc::new(repo.clone()),
        }
    }

    fn eyes(&self) -> &MysqlRepo {
        &self.eyes
    }

    async fn step_clock(&self, by_us: i64) {
        let moved = format!(
            "UPDATE task_leases SET acquired_at = acquired_at - INTERVAL {by_us} MICROSECOND, \
             expires_at = expires_at - INTERVAL {by_us} MICROSECOND, \
             released_at = released_at - INTERVAL {by_us} MICROSECOND, token = token + GREATEST(-({by_us}), 0)"
        );
        self.sql.lock().await.query_drop(moved).await.unwrap();
    }

    async fn lock(&self, name: &LeaseName) -> bool {
        // Whoever else would insert it waits for the end of this insert; whoever would change it, for this lock.
        let name = name.as_str();
        let locked = format!(
            "BEGIN; INSERT INTO task_leases (name, holder, acquired_at, expires_at) \
             VALUES ('{name}', 'nobody', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)) ON DUPLICATE KEY UPDATE token = token"
        );
        self.sql.lock().await.query_drop(locked).await.unwrap();
        true
    }

    async fn unlock(&self) {
        self.sql.lock().await.query_drop("ROLLBACK").await.unwrap();
    }

    async fn sound(&self) -> Result<(), String> {
        match &self.repo {
            Tested::Own(repo) => all_answer(repo).await?,
            Tested::Cold(_) => {}
            Tested::Pooled(_, pool) => all_are_there(pool).await?,
        }
        // A connection that was taken out of the pool with a statement under way ends soon after.
        let busy = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE db = '{}' AND command <> 'Sleep' \
             AND id <> CONNECTION_ID()",
            self.database.name()
        );
        let ended = async {
            let mut sql = self.sql.lock().await;
            while sql.query_first(&busy).await.unwrap() != Some(0) {
                sql.query_drop("DO SLEEP(0.002)").await.unwrap();
            }
        };
        let ended = timeout(Duration::from_secs(10), ended).await;
        ended.map_err(|_| "a statement was left behind in the server".to_owned())
    }
}

/// As many statements at once as the repo has connections.
async fn all_answer(repo: &MysqlRepo) -> Result<(), String> {
    let claim = claim("nothing");
    for answer in join_all((0..OWN_POOL).map(|_| repo.renew(&claim))).await {
        match answer {
            Ok(Renew::Lost(_)) => {}
            other => return Err(format!("a connection of the repo answers {other:?}")),
        }
    }
    Ok(())
}

/// The application can have all its connections at once, and each answers.
async fn all_are_there(pool: &Pool<AsyncMysqlConnection>) -> Result<(), String> {
    let status = pool.status();
    if status.size > POOL || status.available != status.size || status.waiting != 0 {
        return Err(format!("connections are missing: {status:?}"));
    }
    let all = timeout(Duration::from_secs(10), join_all((0..POOL).map(|_| pool.get()))).await;
    let all = all.map_err(|_| format!("a connection went missing: {:?}", pool.status()))?;
    for connection in all {
        let mut connection = connection.map_err(|error| error.to_string())?;
        let answer = connection.batch_execute("DO 1").await;
        answer.map_err(|error| format!("a connection of the pool does not answer: {error}"))?;
    }
    Ok(())
}

fn enough<E: Display>(report: Result<Report, E>, least: usize) {
    let report = report.unwrap_or_else(|what| panic!("{what}"));
    assert!(report.combinations() >= least, "{report}");
    // A busy machine may answer within a poll; yet most futures are dropped under way.
    assert!(report.dropped() >= least / 2, "{report}");
}

async fn publics_leave_nothing(server: Server, least: usize) {
    let product = Product::new(server, Time::running()).rests(&[Rest::Woken]);
    enough(
        product.answers(&[Answer::ReplyLost, Answer::Frozen]).run(SOME).await,
        least,
    );
}

async fn own_futures_leave_nothing(server: Server, rests: &[Rest], least: usize) {
    let product = Product::new(server, Time::running()).rests(rests);
    enough(product.run_own().await, least);
}

macro_rules! on {
    ($module:ident, $dialect:expr, $reason:literal) => {
        mod $module {
            use super::*;

            #[tokio::test]
            #[ignore = $reason]
            async fn public_futures_on_connections_of_our_own_leave_nothing_behind() {
                publics_leave_nothing(Server::own($dialect).await, 60).await;
            }

            #[tokio::test]
            #[ignore = $reason]
            async fn the_repos_futures_on_connections_of_our_own_leave_nothing_behind() {
                own_futures_leave_nothing(Server::own($dialect).await, SPREAD, 100).await;
            }

            #[tokio::test]
            #[ignore = $reason]
            async fn the_repos_futures_leave_nothing_behind_while_they_connect() {
                // A connection has many await points, and each takes its time.
                own_futures_leave_nothing(Server::cold($dialect).await, &[], 100).await;
            }

            #[tokio::test]
            #[ignore = $reason]
            async fn the_repos_futures_on_the_applications_pool_leave_nothing_behind() {
                own_futures_leave_nothing(Server::pooled($dialect).await, SPREAD, 80).await;
            }
        }
    };
}

on!(mysql, Dialect::Mysql, "needs MySQL: cargo xtask test");
on!(mariadb, Dialect::MariaDb, "needs MariaDB: cargo xtask test");

//! Faults by product: every public future dropped at every await point, by every answer of the store; and the repo's
//! own futures, dropped at every await point and at times spread over a statement.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures_util::future::join_all;
use lease_core::{Claim, Label, LeaseName, Renew, Repo};
use lease_postgres::PostgresRepo;
use lease_testkit::product::{Answer, Backend, Product, Public, Report, Rest, Time};
use tokio_postgres::{Client, NoTls};

use crate::world::{World, ms, now, secs, sleep};

/// Sessions that have not ended what they were at, or have a lock.
const BUSY: &str = "SELECT coalesce(string_agg(pid || ' ' || state || ': ' || query, '; '), '') \
    FROM pg_stat_activity a WHERE datname = current_database() AND backend_type = 'client backend' \
    AND pid <> pg_backend_pid() \
    AND (state <> 'idle' OR EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid))";

/// Times over which a statement is spread.
const SPREAD: &[Rest] = &[
    Rest::Woken,
    Rest::Real(Duration::from_micros(80)),
    Rest::Real(Duration::from_micros(250)),
    Rest::Real(Duration::from_micros(600)),
    Rest::Real(Duration::from_micros(1_500)),
];

const DIFFERENT: &[Public] = &[
    Public::JobRun,
    Public::JobTryAcquire,
    Public::JobAcquireTaken,
    Public::GuardRun,
    Public::GuardRelease,
    Public::ShutDown,
    Public::ShutDownStubborn,
    Public::HeldCancelled,
    Public::HeldUntilLost,
];

/// What is another form of one of those.
const FORMS: &[Public] = &[
    Public::LeaseRun,
    Public::JobWithLease,
    Public::LeaseWithLease,
    Public::LeaseTryAcquire,
    Public::JobAcquire,
    Public::LeaseAcquireForever,
    Public::JobAcquireTakenForever,
    Public::PeriodicNext,
    Public::PeriodicRun,
    Public::CampaignNext,
    Public::CampaignRun,
];

struct Server {
    repo: Tested,
    eyes: PostgresRepo,
    sql: Client,
    _world: World,
}

/// The repo under test.
enum Tested {
    /// One that `connect` made, and that stays.
    Own(Arc<PostgresRepo>),
    /// A new clone of it each time, whose pool is empty.
    Cold(PostgresRepo),
    /// On the application's pool.
    Pooled(Arc<PostgresRepo>, Pool<AsyncPgConnection>),
}

const OWN_POOL: usize = 4;
const POOL: usize = 2;

impl Server {
    async fn new(client: impl AsyncFnOnce(&World) -> Tested) -> Self {
        let world = World::shared().await;
        let (sql, connection) = tokio_postgres::connect(world.database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        Self {
            repo: client(&world).await,
            eyes: PostgresRepo::new(world.pool(1)).unwrap(),
            sql,
            _world: world,
        }
    }

    async fn own() -> Self {
        Self::new(async |world| Tested::Own(Arc::new(world.repo().await))).await
    }

    async fn cold() -> Self {
        Self::new(async |world| Tested::Cold(world.repo().await)).await
    }

    async fn pooled() -> Self {
        Self::new(async |world| {
            let pool = world.pool(POOL);
            Tested::Pooled(Arc::new(PostgresRepo::new(pool.clone()).unwrap()), pool)
        })
        .await
    }
}

impl Backend for Server {
    type Repo = PostgresRepo;

    fn repo(&self) -> Arc<PostgresRepo> {
        match &self.repo {
            Tested::Own(repo) | Tested::Pooled(repo, _) => repo.clone(),
            Tested::Cold(repo) => Arc::new(repo.clone()),
        }
    }

    fn eyes(&self) -> &PostgresRepo {
        &self.eyes
    }

    async fn step_clock(&self, by_us: i64) {
        let us = format!("{by_us} * interval '1 us'");
        let moved = format!(
            "UPDATE task_leases SET acquired_at = acquired_at - {us}, expires_at = expires_at - {us}, \
             released_at = released_at - {us}, token = token + GREATEST(-({by_us}), 0)"
        );
        self.sql.batch_execute(&moved).await.unwrap();
    }

    async fn lock(&self, name: &LeaseName) -> bool {
        // Whoever else would insert it waits for the end of this insert; whoever would change it, for this lock.
        let name = name.as_str();
        let locked = format!(
            "BEGIN; INSERT INTO task_leases (name, holder, acquired_at, expires_at) \
             VALUES ('{name}', 'nobody', now(), now()) ON CONFLICT DO NOTHING; \
             SELECT FROM task_leases WHERE name = '{name}' FOR UPDATE"
        );
        self.sql.batch_execute(&locked).await.unwrap();
        true
    }

    async fn unlock(&self) {
        self.sql.batch_execute("ROLLBACK").await.unwrap();
    }

    async fn sound(&self) -> Result<(), String> {
        match &self.repo {
            Tested::Own(repo) => all_answer(repo).await?,
            Tested::Cold(_) => {}
            Tested::Pooled(_, pool) => all_are_there(pool).await?,
        }
        // A connection that was taken out of the pool with a statement under way ends soon after.
        let start = now();
        loop {
            let busy: String = self.sql.query_one(BUSY, &[]).await.map_err(|e| e.to_string())?.get(0);
            if busy.is_empty() {
                return Ok(());
            }
            if now().since(start) > secs(10) {
                return Err(format!("left behind in the server: {busy}"));
            }
            sleep(ms(2)).await;
        }
    }
}

/// As many statements at once as the repo has connections.
async fn all_answer(repo: &PostgresRepo) -> Result<(), String> {
    let holder = Label::new("nobody").unwrap().new_holder();
    let claim = Claim::new(LeaseName::from_static("nothing"), holder, secs(60));
    for answer in join_all((0..OWN_POOL).map(|_| repo.renew(&claim))).await {
        match answer {
            Ok(Renew::Lost(_)) => {}
            other => return Err(format!("a connection of the repo answers {other:?}")),
        }
    }
    Ok(())
}

/// The application can have all its connections at once, and each answers.
async fn all_are_there(pool: &Pool<AsyncPgConnection>) -> Result<(), String> {
    let status = pool.status();
    if status.size > POOL || status.available != status.size || status.waiting != 0 {
        return Err(format!("connections are missing: {status:?}"));
    }
    let both = tokio::time::timeout(secs(10), join_all((0..POOL).map(|_| pool.get()))).await;
    let both = both.map_err(|_| format!("a connection went missing: {:?}", pool.status()))?;
    for connection in both {
        let mut connection = connection.map_err(|error| error.to_string())?;
        let answer = diesel::sql_query("SELECT 1").execute(&mut connection).await;
        answer.map_err(|error| format!("a connection of the pool does not answer: {error}"))?;
    }
    Ok(())
}

/// All answers for those that differ, and one for what is another form of them.
async fn publics_leave_nothing(server: Server, answers: &[Answer], forms: &[Public], least: usize) {
    let product = Product::new(server, Time::running()).rests(&[Rest::Woken]);
    let product = product.answers(answers);
    let mut report = found(product.run(DIFFERENT).await);
    report.add(found(product.answers(&[Answer::ReplyLost]).run(forms).await));
    enough(&report, least);
}

async fn own_futures_leave_nothing(server: Server, rests: &[Rest], least: usize) {
    let product = Product::new(server, Time::running()).rests(rests);
    enough(&found(product.run_own().await), least);
}

fn found<E: Display>(report: Result<Report, E>) -> Report {
    report.unwrap_or_else(|what| panic!("{what}"))
}

fn enough(report: &Report, least: usize) {
    assert!(report.combinations() >= least, "{report}");
    // A busy machine may answer within a poll; yet most futures are dropped under way.
    assert!(report.dropped() >= least / 2, "{report}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn public_futures_on_connections_of_our_own_leave_nothing_behind() {
    publics_leave_nothing(Server::own().await, Answer::FEW, FORMS, 500).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn public_futures_on_the_applications_pool_leave_nothing_behind() {
    // What the pool has to do with it shows in any of the answers.
    publics_leave_nothing(Server::pooled().await, &[Answer::ReplyLost, Answer::Frozen], &[], 180).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn the_repos_futures_on_connections_of_our_own_leave_nothing_behind() {
    own_futures_leave_nothing(Server::own().await, SPREAD, 200).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn the_repos_futures_leave_nothing_behind_while_they_connect() {
    own_futures_leave_nothing(Server::cold().await, &SPREAD[..2], 250).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn the_repos_futures_on_the_applications_pool_leave_nothing_behind() {
    own_futures_leave_nothing(Server::pooled().await, SPREAD, 80).await;
}

#[test]
fn no_public_future_is_left_out() {
    let mut all = [DIFFERENT, FORMS].concat();
    all.sort_unstable();
    assert_eq!(all, Public::ALL);
}

//! Who waits hears of a release: at once, of his own lease only, and again after whatever cut him off.
//!
//! Waits end when they are told; their limits are for a machine under load, and for what takes a few rounds of five seconds.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use futures_util::FutureExt;
use lease_core::{Acquire, Claim, Evict, Inspect, Label, Lease, LeaseName, Note, Release, Repo, Wait};
use lease_postgres::PostgresRepo;
use lease_testkit::servers::{Pooler, Postgres, Settings, Source};
use tokio::time::timeout;

use crate::support::{Database, claim, name, private_server};

const S: Duration = Duration::from_secs(1);

/// Sessions that listen.
const LISTENING: &str = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'lease' \
                         AND (query LIKE 'LISTEN %' OR query LIKE 'SELECT to_regclass(%')";

async fn within<T>(what: &str, limit: Duration, future: impl Future<Output = T>) -> T {
    let answer = timeout(limit, future).await;
    answer.unwrap_or_else(|_| panic!("not within {limit:?}: {what}"))
}

/// Waits until a condition holds.
async fn until(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    within(what, limit, async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Until the repo listens: from then on it hears of each release.
async fn listens(repo: &PostgresRepo, lease: &LeaseName) {
    within("it listens", 20 * S, repo.freed(lease)).await;
}

async fn takes(repo: &PostgresRepo, claim: &Claim) {
    let answer = repo.acquire(claim).await.unwrap();
    assert!(matches!(answer, Acquire::Granted(_)), "{answer:?}");
}

async fn frees(repo: &PostgresRepo, claim: &Claim) {
    assert_eq!(repo.release(claim).await.unwrap(), Release::Released);
}

/// Takes and releases a lease, of which who waits hears.
async fn is_heard(teller: &PostgresRepo, listener: &PostgresRepo, lease: &str) {
    let held = claim(lease);
    takes(teller, &held).await;
    let mut hint = pin!(listener.freed(&held.name));
    assert!(hint.as_mut().now_or_never().is_none(), "{lease:?}: nobody released it");
    frees(teller, &held).await;
    within(lease, 20 * S, hint).await;
}

async fn migrated() -> (Database, PostgresRepo, PostgresRepo) {
    let (database, repo) = Database::migrated().await;
    let repo = repo.notify(true);
    let other = repo.clone();
    (database, repo, other)
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn all_that_frees_a_lease_tells_who_waits_for_it() {
    let (_database, waiting, repo) = migrated().await;
    let job = name("job");
    listens(&waiting, &job).await;
    is_heard(&repo, &waiting, "job").await;
    is_heard(&repo.clone().delete_on_release(true), &waiting, "job").await;
    // It is not deleted while a minimum is left.
    let held = claim("job").at_least_for(60 * S);
    takes(&repo, &held).await;
    frees(&repo.clone().delete_on_release(true), &held).await;
    within("with a minimum", 20 * S, waiting.freed(&job)).await;
    // An operator tells always.
    let (operator, by, reason) = (
        repo.clone().notify(false),
        Label::new("op").unwrap(),
        Note::new("test").unwrap(),
    );
    assert!(matches!(
        operator.evict_now(&job, &by, &reason).await.unwrap(),
        Evict::Evicted { .. }
    ));
    within("evict_now", 20 * S, waiting.freed(&job)).await;
    operator.pause(&job, 60 * S, &by, &reason).await.unwrap();
    assert_eq!(operator.resume(&job).await.unwrap(), Release::Released);
    within("resume", 20 * S, waiting.freed(&job)).await;
    // What changes nothing tells nothing, and neither does who is not told to. The last of these is heard, and before it none.
    assert_eq!(repo.release(&claim("job")).await.unwrap(), Release::NotHeld);
    let silent = claim("job");
    takes(&operator, &silent).await;
    frees(&operator, &silent).await;
    let mut hint = pin!(waiting.freed(&job));
    assert!(hint.as_mut().now_or_never().is_none());
    listens(&waiting, &name("last")).await;
    is_heard(&repo, &waiting, "last").await;
    assert!(hint.now_or_never().is_none());
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_release_that_tells_is_one_statement_prepared_once() {
    let server = private_server();
    let repo = PostgresRepo::connect(server.url()).await.unwrap().notify(true);
    repo.migrate().await.unwrap();
    server.sql("CREATE EXTENSION pg_stat_statements").unwrap();
    for repo in [repo.clone(), repo.clone().delete_on_release(true)] {
        let pool = repo.connections(1).unwrap();
        let held = claim("job");
        takes(&pool, &held).await;
        frees(&pool, &held).await;
        server.sql("SELECT pg_stat_statements_reset()").unwrap();
        for _ in 0..10 {
            let held = claim("job");
            takes(&pool, &held).await;
            frees(&pool, &held).await;
        }
        let calls = "SELECT calls || ' ' || plans FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid \
                     WHERE datname = current_database() AND query LIKE '%pg_notify%' AND query NOT LIKE '%pg_stat%'";
        assert_eq!(server.sql(calls).unwrap(), ["10 0"]);
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_table_of_any_name_is_heard_of() {
    let (database, waiting, repo) = migrated().await;
    database.run("CREATE SCHEMA \"o'ps\"");
    let job = name("job");
    listens(&waiting, &job).await;
    for table in ["o'ps.task_leases", "o'ps.My \"jobs\"", "public.lease_1"] {
        let there = repo.clone().table(table).unwrap();
        there.migrate().await.unwrap();
        let also_there = there.clone();
        listens(&also_there, &job).await;
        is_heard(&there, &also_there, "job").await;
    }
    // The same table by another name.
    is_heard(&repo.clone().table("public.task_leases").unwrap(), &waiting, "job").await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn another_lease_or_table_is_not_heard() {
    let (_database, waiting, repo) = migrated().await;
    let elsewhere = repo.clone().table("public.elsewhere").unwrap();
    elsewhere.migrate().await.unwrap();
    let job = name("job");
    for lease in ["job", "jo", "job2", "JOB"] {
        listens(&waiting, &name(lease)).await;
    }
    let mut hint = pin!(waiting.freed(&job));
    assert!(hint.as_mut().now_or_never().is_none());
    let held = claim("job");
    takes(&elsewhere, &held).await;
    frees(&elsewhere, &held).await;
    // They come in the order of their commits: with the last of these, the one before would be here.
    for lease in ["jo", "job2", "JOB"] {
        is_heard(&repo, &waiting, lease).await;
        assert!(hint.as_mut().now_or_never().is_none(), "{lease}");
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_name_of_any_kind_is_heard() {
    let (_database, waiting, repo) = migrated().await;
    let long = "é".repeat(64);
    for lease in [
        "'); DROP TABLE task_leases; --",
        "\\x00'\"$1",
        "lease_1 / job",
        "日本\u{2028}語",
        "null",
        "%s",
        &long,
    ] {
        listens(&waiting, &name(lease)).await;
        is_heard(&repo, &waiting, lease).await;
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_connection_that_is_killed_is_opened_again_and_who_waits_is_told() {
    let server = private_server();
    let repo = PostgresRepo::connect(server.url()).await.unwrap().notify(true);
    repo.migrate().await.unwrap();
    let (waiting, job) = (repo.clone(), name("job"));
    listens(&waiting, &job).await;
    let kill = format!("SELECT pg_terminate_backend(pid) FROM ({LISTENING}) l");
    for _ in 0..3 {
        let before = server.sql(LISTENING).unwrap();
        assert_eq!(before.len(), 1, "one for all who wait");
        let mut hint = pin!(waiting.freed(&job));
        assert!(hint.as_mut().now_or_never().is_none());
        server.sql(&kill).unwrap();
        within("it may have missed one", 20 * S, hint).await;
        let now = server.sql(LISTENING).unwrap();
        assert!(now.len() == 1 && now != before, "{before:?} {now:?}");
        is_heard(&repo, &waiting, "job").await;
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_server_that_was_away_is_listened_to_again() {
    let server = private_server();
    let repo = PostgresRepo::connect(server.url()).await.unwrap().notify(true);
    repo.migrate().await.unwrap();
    let (waiting, job) = (repo.clone(), name("job"));
    listens(&waiting, &job).await;
    let mut hint = pin!(waiting.freed(&job));
    assert!(hint.as_mut().now_or_never().is_none());
    server.stop().unwrap();
    assert!(timeout(S, hint.as_mut()).await.is_err(), "there is nothing to tell");
    server.start().unwrap();
    within("the server is back", 60 * S, hint).await;
    is_heard(&repo, &waiting, "job").await;
}

/// Nothing tells that: the connection is open, and silent.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_session_that_is_frozen_is_left_for_another() {
    let server = private_server();
    let repo = PostgresRepo::connect(server.url()).await.unwrap().notify(true);
    repo.migrate().await.unwrap();
    let (waiting, job) = (repo.clone(), name("job"));
    listens(&waiting, &job).await;
    let frozen: i32 = server.sql(LISTENING).unwrap()[0].parse().unwrap();
    server.pause_backend(frozen).unwrap();
    within("it gave no sign of life", 60 * S, waiting.freed(&job)).await;
    is_heard(&repo, &waiting, "job").await;
    server.resume_backend(frozen).unwrap();
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_table_that_is_made_anew_is_heard_of() {
    let (database, waiting, repo) = migrated().await;
    let job = name("job");
    listens(&waiting, &job).await;
    database.run("DROP TABLE task_leases");
    repo.migrate().await.unwrap();
    within("it is another one", 60 * S, waiting.freed(&job)).await;
    is_heard(&repo, &waiting, "job").await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_standby_is_listened_to_once_it_is_promoted() {
    let server = || Postgres::private(&Settings::default().source(Source::Local).password("of both")).unwrap();
    let (primary, standby) = (server(), server());
    let repo = PostgresRepo::connect(primary.url()).await.unwrap();
    repo.migrate().await.unwrap();
    standby.follow(&primary).unwrap();
    let waiting = PostgresRepo::lazy(standby.url()).unwrap().notify(true);
    let job = name("job");
    let mut hint = pin!(waiting.freed(&job));
    // Time for several tries, each of which the standby refuses.
    assert!(timeout(2 * S, hint.as_mut()).await.is_err(), "nobody can listen there");
    primary.kill().unwrap();
    standby.promote().unwrap();
    within("it can be listened to", 60 * S, hint).await;
    is_heard(&waiting.clone(), &waiting, "job").await;
}

/// `freed` itself has one point at which it rests; the connection is opened meanwhile, and is at another point each time.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn who_leaves_at_any_time_leaves_no_connection() {
    let (database, repo, _) = migrated().await;
    let listening = || database.rows(LISTENING).len();
    let all = || database.sessions().len();
    let (before, job) = (all(), name("job"));
    for micros in [0, 100, 300, 1_000, 2_000, 4_000, 8_000, 16_000, 100_000] {
        let gone = repo.clone();
        let waited = timeout(Duration::from_micros(micros), gone.freed(&job));
        drop(waited.await);
        drop(gone);
    }
    // Sessions that were just closed may have been among those before.
    let closed = || all() <= before && listening() == 0;
    until("with its repo, a connection is closed", 20 * S, closed).await;
    // With the repo there, after a while; and it can be waited on again.
    for _ in 0..2 {
        listens(&repo, &job).await;
        assert_eq!(listening(), 1);
        until("nobody waits any more", 60 * S, || listening() == 0).await;
    }
}

/// A session of the server that hears is another client's a moment later.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn behind_pgbouncer_releases_tell_and_who_waits_polls() {
    let pooler = Pooler::before(Postgres::shared().unwrap(), &[("max_prepared_statements", "200")]).unwrap();
    let database = Database::empty();
    let direct = database.repo().await.notify(true);
    direct.migrate().await.unwrap();
    let database = database.through(&pooler);
    let pooled = database.repo().await.notify(true);
    let job = name("job");
    listens(&direct, &job).await;
    let mut deaf = pin!(pooled.freed(&job));
    assert!(timeout(S, deaf.as_mut()).await.is_err());
    is_heard(&pooled.clone(), &direct, "job").await;
    assert!(timeout(S, deaf.as_mut()).await.is_err());
    let channels = "SELECT count(*)::text FROM pg_listening_channels()";
    let session = crate::support::sql(&database.url).await;
    for _ in 0..20 {
        for message in session.simple_query(channels).await.unwrap() {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                assert_eq!(row.get(0), Some("0"), "no session of the pooler listens");
            }
        }
    }
    let held = claim("job");
    takes(&direct, &held).await;
    let lease = Lease::new(pooled.clone());
    let polls = lease.acquire("job", held.ttl, Wait::Forever);
    let release = async {
        tokio::task::yield_now().await;
        frees(&direct, &held).await;
    };
    let (guard, ()) = Box::pin(within("it polls", 20 * S, async { tokio::join!(polls, release) })).await;
    guard.unwrap().release().await.unwrap();
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn with_a_pool_of_the_applications_releases_tell_and_who_waits_polls() {
    let (database, waiting, _) = migrated().await;
    let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new(&database.url);
    let foreign = PostgresRepo::new(Pool::builder(manager).max_size(2).build().unwrap())
        .unwrap()
        .notify(true);
    let job = name("job");
    listens(&waiting, &job).await;
    is_heard(&foreign, &waiting, "job").await;
    assert!(timeout(S / 2, foreign.freed(&job)).await.is_err());
}

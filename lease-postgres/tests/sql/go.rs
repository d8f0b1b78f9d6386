//! Pods of the Go package on the same table, by its own statements as the docs show them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use lease_core::{Acquire, Inspect, Release, Renew, Repo};
use lease_testkit::Overlap;
use tokio_postgres::Client;

use crate::support::{Database, claim, name};

/// As the Go package makes it.
const TABLE: &str = "CREATE TABLE task_leases (name varchar(128) PRIMARY KEY, holder varchar(128) NOT NULL, \
     acquired_at timestamptz NOT NULL, expires_at timestamptz NOT NULL); \
     CREATE INDEX idx_task_leases_expires_at ON task_leases (expires_at)";

/// A statement from the docs, by the comment before it.
fn documented(what: &str) -> String {
    let docs = include_str!("../../src/docs.md");
    let (_, rest) = docs.split_once(&format!("-- The Go package's {what}")).unwrap();
    let (_, statement) = rest.split_once('\n').unwrap();
    statement.split_once(';').unwrap().0.to_owned()
}

/// A pod of the Go package.
struct Go {
    holder: &'static str,
    sql: Client,
}

impl Go {
    async fn start(database: &Database, holder: &'static str) -> Self {
        let sql = database.sql().await;
        Self { holder, sql }
    }

    /// It sends its ttl as whole seconds.
    async fn acquire(&self, lease: &str, seconds: f64) -> bool {
        let acquire = documented("acquire");
        self.sql
            .execute(&acquire, &[&lease, &self.holder, &seconds])
            .await
            .unwrap()
            == 1
    }

    async fn renew(&self, lease: &str, seconds: f64) -> bool {
        let renew = documented("renew");
        self.sql
            .execute(&renew, &[&lease, &self.holder, &seconds])
            .await
            .unwrap()
            == 1
    }

    async fn release(&self, lease: &str) {
        let release = documented("release");
        self.sql.execute(&release, &[&lease, &self.holder]).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn pods_of_both_packages_exclude_each_other() {
    let database = Database::empty();
    database.run(TABLE);
    let repo = database.repo().await;
    repo.migrate().await.unwrap();
    let go = Go::start(&database, "go-1").await;

    let ours = claim("job");
    assert!(matches!(repo.acquire(&ours).await.unwrap(), Acquire::Granted(_)));
    assert!(!go.acquire("job", 30.0).await, "we have it");
    assert!(!go.renew("job", 30.0).await);
    go.release("job").await;
    assert_eq!(
        repo.renew(&ours).await.unwrap(),
        Renew::Renewed,
        "its release was not about ours"
    );
    assert_eq!(repo.release(&ours).await.unwrap(), Release::Released);

    assert!(go.acquire("job", 30.0).await, "we released it");
    assert!(go.acquire("job", 30.0).await, "the same holder again");
    assert!(
        matches!(repo.acquire(&claim("job")).await.unwrap(), Acquire::Busy(Some(who)) if who.holder == "go-1"),
        "it has it"
    );
    assert_eq!(repo.release(&ours).await.unwrap(), Release::NotHeld);
    assert!(go.renew("job", 30.0).await);
    database.age(Duration::from_secs(31));
    let later = claim("job");
    assert!(
        matches!(repo.acquire(&later).await.unwrap(), Acquire::Granted(_)),
        "it died"
    );
    assert!(!go.renew("job", 30.0).await, "and is told so");
    database.age(Duration::from_secs(31));
    assert!(go.acquire("job", 30.0).await, "we died");
    assert!(
        matches!(repo.renew(&later).await.unwrap(), Renew::Lost(_)),
        "and are told so"
    );
    go.release("job").await;
    assert!(repo.get(&name("job")).await.unwrap().is_none(), "it deletes the row");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn of_contenders_of_both_packages_one_wins() {
    let database = Database::empty();
    database.run(TABLE);
    let repos = join_all((0..6).map(|_| database.repo())).await;
    repos[0].migrate().await.unwrap();
    let holders = ["go-1", "go-2", "go-3", "go-4", "go-5", "go-6"];
    let pods = join_all(holders.map(|holder| Go::start(&database, holder))).await;
    for round in 0..100 {
        // Every other row is new; the others are expired.
        let lease = format!("job-{}", round / 2);
        let claims = [(); 6].map(|()| claim(&lease));
        let ours = join_all(
            repos
                .iter()
                .zip(&claims)
                .map(async |(repo, claim)| matches!(repo.acquire(claim).await.unwrap(), Acquire::Granted(_))),
        );
        let theirs = join_all(pods.iter().map(|go| go.acquire(&lease, 30.0)));
        let (ours, theirs) = tokio::join!(ours, theirs);
        let winners = ours.iter().chain(&theirs).filter(|won| **won).count();
        assert_eq!(winners, 1, "round {round}: ours {ours:?}, theirs {theirs:?}");
        database.age(Duration::from_secs(60));
    }
}

/// A table is taken over while pods of the Go package work on it, and both go on.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_table_of_the_go_package_is_migrated_under_its_running_pods() {
    let database = Database::empty();
    database.run(TABLE);
    let go = Go::start(&database, "go-1").await;
    assert!(go.acquire("held", 30.0).await);
    let over = Arc::new(AtomicBool::new(false));
    let (overlap, stop) = (Overlap::new().ignoring_tokens(), over.clone());
    let theirs = overlap.clone();
    let running = tokio::spawn(async move {
        let mut rounds = 0;
        while !stop.load(Ordering::SeqCst) {
            assert!(go.renew("held", 30.0).await, "nobody takes it away");
            if go.acquire("shared", 30.0).await {
                let token = lease_core::Token::new(1).unwrap();
                let inside = theirs.enter("shared", token);
                tokio::task::yield_now().await;
                drop(inside);
                go.release("shared").await;
                rounds += 1;
            }
        }
        rounds
    });
    let repo = database.repo().await;
    repo.migrate().await.unwrap();
    repo.check_schema().await.unwrap();
    let mut rounds = 0;
    while rounds < 50 {
        let ours = claim("shared");
        if let Acquire::Granted(token) = repo.acquire(&ours).await.unwrap() {
            let inside = overlap.enter("shared", token);
            tokio::task::yield_now().await;
            drop(inside);
            assert_eq!(repo.release(&ours).await.unwrap(), Release::Released);
            rounds += 1;
        }
    }
    over.store(true, Ordering::SeqCst);
    assert!(running.await.unwrap() > 0, "both had their turns");
    overlap.finish().unwrap();
    assert!(matches!(
        repo.acquire(&claim("held")).await.unwrap(),
        Acquire::Busy(Some(who)) if who.holder == "go-1"
    ));
}

//! Pods of the Go package on the same table, by its own statements as the docs show them.

use std::time::Duration;

use lease_core::{Acquire, Inspect, Release, Renew, Repo};
use lease_testkit::servers::Dialect;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::schema::GO_TABLE;
use crate::support::{Database, claim, name, on_both};

on_both!(
    pods_of_both_packages_exclude_each_other,
    of_contenders_of_both_packages_one_wins
);

/// A statement from the docs, by the comment before it.
fn documented(what: &str) -> String {
    let docs = include_str!("../../src/docs.md");
    let (_, rest) = docs.split_once(&format!("-- The Go package's {what}")).unwrap();
    let (_, statement) = rest.split_once('\n').unwrap();
    statement.split_once(';').unwrap().0.to_owned()
}

/// A pod of the Go package, whose sessions are in UTC.
struct Go {
    holder: &'static str,
    sql: Conn,
}

impl Go {
    async fn start(database: &Database, holder: &'static str) -> Self {
        let mut sql = database.sql().await;
        sql.query_drop("SET time_zone = '+00:00'").await.unwrap();
        Self { holder, sql }
    }

    /// It sends its ttl as whole seconds.
    async fn acquire(&mut self, lease: &str, seconds: u32) -> bool {
        let values = (lease, self.holder, seconds);
        loop {
            match self.sql.exec_drop(documented("acquire"), values).await {
                Ok(()) => break,
                // Its own upserts deadlock with each other on an absent row; it tries again at its next tick.
                Err(mysql_async::Error::Server(error)) if error.code == 1213 => {}
                Err(error) => panic!("{error}"),
            }
        }
        let has_it: Option<Vec<u8>> = self.sql.exec_first(documented("look"), (lease,)).await.unwrap();
        has_it.is_some_and(|holder| holder == self.holder.as_bytes())
    }

    async fn renew(&mut self, lease: &str, seconds: u32) -> bool {
        let values = (seconds, lease, self.holder);
        self.sql.exec_drop(documented("renew"), values).await.unwrap();
        self.sql.affected_rows() == 1
    }

    async fn release(&mut self, lease: &str) {
        let values = (lease, self.holder);
        self.sql.exec_drop(documented("release"), values).await.unwrap();
    }
}

async fn pods_of_both_packages_exclude_each_other(dialect: Dialect) {
    let database = Database::empty(dialect);
    database.run(GO_TABLE);
    let repo = database.repo().await;
    repo.migrate().await.unwrap();
    let mut go = Go::start(&database, "go-1").await;

    let ours = claim("job");
    assert!(matches!(repo.acquire(&ours).await.unwrap(), Acquire::Granted(_)));
    assert!(!go.acquire("job", 30).await, "we have it");
    assert!(!go.renew("job", 30).await);
    go.release("job").await;
    assert_eq!(
        repo.renew(&ours).await.unwrap(),
        Renew::Renewed,
        "its release was not about ours"
    );
    assert_eq!(repo.release(&ours).await.unwrap(), Release::Released);

    assert!(go.acquire("job", 30).await, "we released it");
    assert!(go.acquire("job", 30).await, "the same holder again");
    assert!(
        matches!(repo.acquire(&claim("job")).await.unwrap(), Acquire::Busy(Some(who)) if who.holder == "go-1"),
        "it has it"
    );
    assert_eq!(repo.release(&ours).await.unwrap(), Release::NotHeld);
    assert!(go.renew("job", 30).await);
    database.age(Duration::from_secs(31));
    let later = claim("job");
    assert!(
        matches!(repo.acquire(&later).await.unwrap(), Acquire::Granted(_)),
        "it died"
    );
    assert!(!go.renew("job", 30).await, "and is told so");
    database.age(Duration::from_secs(31));
    assert!(go.acquire("job", 30).await, "we died");
    assert!(
        matches!(repo.renew(&later).await.unwrap(), Renew::Lost(_)),
        "and are told so"
    );
    go.release("job").await;
    assert!(repo.get(&name("job")).await.unwrap().is_none(), "it deletes the row");
}

async fn of_contenders_of_both_packages_one_wins(dialect: Dialect) {
    let database = Database::empty(dialect);
    database.run(GO_TABLE);
    let first = database.repo().await;
    first.migrate().await.unwrap();
    let repos: Vec<_> = (0..6).map(|_| first.clone()).collect();
    let mut pods = Vec::new();
    for holder in ["go-1", "go-2", "go-3", "go-4", "go-5", "go-6"] {
        pods.push(Go::start(&database, holder).await);
    }
    for round in 0..60 {
        // Every other row is new; the others are expired.
        let lease = format!("job-{}", round / 2);
        let mut tries = tokio::task::JoinSet::new();
        for repo in &repos {
            let (repo, claim) = (repo.clone(), claim(&lease));
            tries.spawn(async move {
                let won = matches!(repo.acquire(&claim).await.unwrap(), Acquire::Granted(_));
                (None, won)
            });
        }
        for mut go in pods.drain(..) {
            let lease = lease.clone();
            tries.spawn(async move {
                let won = go.acquire(&lease, 30).await;
                (Some(go), won)
            });
        }
        let mut winners = 0;
        while let Some(one) = tries.join_next().await {
            let (go, won) = one.unwrap();
            winners += usize::from(won);
            pods.extend(go);
        }
        assert_eq!(winners, 1, "round {round}");
        database.age(Duration::from_secs(60));
    }
}

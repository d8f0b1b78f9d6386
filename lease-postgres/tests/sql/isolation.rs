//! C7 and C8: one winner and no error, whatever the server's default isolation level.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use lease_core::{Acquire, Release, Repo};
use lease_postgres::PostgresRepo;

use crate::support::{Database, claim};

const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

async fn at_level(level: &str) -> (Database, PostgresRepo) {
    let (database, _) = Database::migrated().await;
    database.set(&format!("default_transaction_isolation = '{level}'"));
    let shown = database
        .sql()
        .await
        .query_one("SHOW transaction_isolation", &[])
        .await
        .unwrap();
    assert_eq!(shown.get::<_, &str>(0), level);
    let repo = database.repo().await;
    (database, repo)
}

/// C7.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_counter_is_exact_at_every_isolation_level() {
    for level in LEVELS {
        let (_database, repo) = at_level(level).await;
        let counter = Arc::new(AtomicU64::new(0));
        let clients = (0..8).map(|_| {
            let (repo, counter) = (repo.clone(), counter.clone());
            tokio::spawn(async move {
                for _ in 0..100 {
                    let claim = claim("counter");
                    while !matches!(repo.acquire(&claim).await.unwrap(), Acquire::Granted(_)) {}
                    let seen = counter.load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    counter.store(seen + 1, Ordering::SeqCst);
                    assert_eq!(repo.release(&claim).await.unwrap(), Release::Released);
                }
            })
        });
        for client in join_all(clients).await {
            client.unwrap();
        }
        assert_eq!(counter.load(Ordering::SeqCst), 800, "{level}");
    }
}

/// C8, on a row that is absent and then on the same row, just expired.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn thirty_two_at_once_have_one_winner() {
    for level in LEVELS {
        let (database, first) = at_level(level).await;
        let repos: Vec<_> = (0..8).map(|_| Arc::new(first.clone())).collect();
        let sql = database.sql().await;
        for round in 0..200 {
            for expired in [false, true] {
                if expired {
                    sql.batch_execute("UPDATE task_leases SET expires_at = clock_timestamp()")
                        .await
                        .unwrap();
                }
                let tries = (0..32).map(|at| {
                    let (repo, claim) = (repos[at % 8].clone(), claim(&format!("job {round}")));
                    tokio::spawn(async move { repo.acquire(&claim).await.unwrap() })
                });
                let answers = join_all(tries).await;
                let won = answers
                    .into_iter()
                    .filter(|answer| matches!(answer, Ok(Acquire::Granted(_))))
                    .count();
                assert_eq!(won, 1, "{level}, round {round}, expired {expired}");
            }
        }
    }
}

//! The laws where the server's locks, clocks and rows decide.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use lease_core::{Acquire, Inspect, Loss, PURGE_MARGIN, Release, Renew, Repo};

use crate::support::{Database, claim, name};

const S: Duration = Duration::from_secs(1);

/// C1.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn operations_touch_no_other_row() {
    let (database, repo) = Database::migrated().await;
    let (a, b) = (claim("a"), claim("b"));
    repo.acquire(&a).await.unwrap();
    repo.acquire(&b).await.unwrap();
    database.age(60 * S);
    let before = database.row(&b.name).await;
    assert_eq!(repo.renew(&a).await.unwrap(), Renew::Lost(Loss::Expired));
    assert!(matches!(repo.acquire(&a).await.unwrap(), Acquire::Granted(_)));
    assert_eq!(repo.renew(&a).await.unwrap(), Renew::Renewed);
    assert_eq!(repo.release(&a).await.unwrap(), Release::Released);
    assert_eq!(database.row(&b.name).await, before);
}

/// C2.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_late_release_leaves_the_successor_alone() {
    let (database, repo) = Database::migrated().await;
    let (a, b, c) = (claim("job"), claim("job"), claim("job"));
    repo.acquire(&a).await.unwrap();
    database.age(60 * S);
    assert!(matches!(repo.acquire(&b).await.unwrap(), Acquire::Granted(_)));
    let before = database.row(&b.name).await;
    assert_eq!(repo.release(&a).await.unwrap(), Release::NotHeld);
    assert_eq!(database.row(&b.name).await, before);
    assert!(matches!(repo.acquire(&c).await.unwrap(), Acquire::Busy(Some(who)) if who.holder == b.holder.as_str()));
}

/// C51.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_retried_acquire_keeps_token_and_start_and_extends() {
    let (database, repo) = Database::migrated().await;
    let claim = claim("job");
    let first = repo.acquire(&claim).await.unwrap();
    database.age(10 * S);
    let before = repo.get(&claim.name).await.unwrap().unwrap();
    assert_eq!(repo.acquire(&claim).await.unwrap(), first);
    let after = repo.get(&claim.name).await.unwrap().unwrap();
    assert_eq!(after.acquired_at, before.acquired_at);
    assert!(after.expires_at.as_micros() - before.expires_at.as_micros() >= 10_000_000);
}

/// C17. Real waits, judged by the server's clock alone: the successor's start is never before the end, and soon after.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_ttl_below_a_second_is_kept_to_the_microsecond() {
    let (_database, repo) = Database::migrated().await;
    let mut short = claim("job");
    short.ttl = Duration::from_micros(300_001);
    repo.acquire(&short).await.unwrap();
    let held = repo.get(&short.name).await.unwrap().unwrap();
    let length = held.expires_at.as_micros() - held.acquired_at.as_micros();
    assert!((300_001..310_000).contains(&length), "{length}");
    let next = claim("job");
    while !matches!(repo.acquire(&next).await.unwrap(), Acquire::Granted(_)) {}
    let taken = repo.get(&short.name).await.unwrap().unwrap();
    let gap = taken.acquired_at.as_micros() - held.expires_at.as_micros();
    assert!((0..5_000_000).contains(&gap), "{gap}");
}

/// C36, whether whoever held the lock changed the row or not. The wait is the point; what is compared is the
/// server's clock at the end of the lock with the expiry.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn times_are_read_after_a_wait_for_the_row() {
    let (database, repo) = Database::migrated().await;
    let mut held = claim("job");
    held.ttl = 5 * S;
    repo.acquire(&held).await.unwrap();
    for change in [
        "SELECT 1 FROM task_leases FOR UPDATE",
        "UPDATE task_leases SET note = 'x'",
    ] {
        for retry in [false, true] {
            let mut locker = database.sql().await;
            let lock = locker.transaction().await.unwrap();
            lock.batch_execute(change).await.unwrap();
            let other = repo.clone();
            let claim = held.clone();
            let waiting = tokio::spawn(async move {
                if retry {
                    matches!(other.acquire(&claim).await.unwrap(), Acquire::Granted(_))
                } else {
                    other.renew(&claim).await.unwrap() == Renew::Renewed
                }
            });
            lock.batch_execute("SELECT pg_sleep(1)").await.unwrap();
            let until: i64 = lock
                .query_one("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", &[])
                .await
                .unwrap()
                .get(0);
            lock.commit().await.unwrap();
            assert!(waiting.await.unwrap());
            let row = repo.get(&held.name).await.unwrap().unwrap();
            assert!(
                row.expires_at.as_micros() >= until + 5_000_000,
                "{change}, retry {retry}"
            );
        }
    }
}

/// A lease whose row ran out while its renewal waited for the lock is lost, not revived.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_renewal_that_waited_past_the_expiry_is_lost() {
    let (database, repo) = Database::migrated().await;
    let mut held = claim("job");
    held.ttl = Duration::from_millis(500);
    repo.acquire(&held).await.unwrap();
    let mut locker = database.sql().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("SELECT 1 FROM task_leases FOR UPDATE")
        .await
        .unwrap();
    let (other, claim) = (repo.clone(), held.clone());
    let waiting = tokio::spawn(async move { other.renew(&claim).await.unwrap() });
    lock.batch_execute("SELECT pg_sleep(1)").await.unwrap();
    lock.commit().await.unwrap();
    assert_eq!(waiting.await.unwrap(), Renew::Lost(Loss::Expired));
}

/// Who only looks on waits for nobody: a locked row is busy at once, live or expired.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_locked_row_is_busy_without_a_wait() {
    let (database, repo) = Database::migrated().await;
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    let mut locker = database.sql().await;
    let fence = locker.transaction().await.unwrap();
    fence
        .batch_execute("SELECT 1 FROM task_leases FOR KEY SHARE")
        .await
        .unwrap();
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Busy(Some(_))
    ));
    assert_eq!(
        repo.renew(&held).await.unwrap(),
        Renew::Renewed,
        "a fence does not block its own holder"
    );
    database.age(60 * S);
    assert_eq!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Busy(None),
        "an open fence holds off a takeover"
    );
    assert_eq!(repo.purge(Duration::ZERO).await.unwrap(), 0, "and a purge");
    fence.commit().await.unwrap();
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
}

/// C54. The row has been free for long, so that in each round the purge and eight clients are after it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_purge_races_a_counter() {
    let (database, repo) = Database::migrated().await;
    let counter = Arc::new(AtomicI64::new(0));
    let last_token = Arc::new(AtomicI64::new(0));
    let mut held = claim("another");
    held.ttl = 86_400 * S;
    held.limit = 5 * S;
    repo.acquire(&held).await.unwrap();

    let mut purged = 0;
    for round in 0..40 {
        let purger = repo.clone();
        let purging = tokio::spawn(async move { purger.purge(Duration::ZERO).await.unwrap() });
        let (renewer, other) = (repo.clone(), held.clone());
        let renewing = tokio::spawn(async move { renewer.renew(&other).await.unwrap() });
        let mut clients = Vec::new();
        for _ in 0..8 {
            let (repo, counter, last_token) = (repo.clone(), counter.clone(), last_token.clone());
            clients.push(tokio::spawn(async move {
                let claim = claim("job");
                let token = loop {
                    if let Acquire::Granted(token) = repo.acquire(&claim).await.unwrap() {
                        break token.get();
                    }
                };
                let seen = counter.load(Ordering::SeqCst);
                assert!(last_token.swap(token, Ordering::SeqCst) < token, "tokens grow");
                tokio::task::yield_now().await;
                counter.store(seen + 1, Ordering::SeqCst);
                assert_eq!(repo.release(&claim).await.unwrap(), Release::Released);
            }));
        }
        for client in clients {
            client.await.unwrap();
        }
        assert_eq!(renewing.await.unwrap(), Renew::Renewed, "no renewal waits for a purge");
        purged += purging.await.unwrap();
        assert_eq!(counter.load(Ordering::SeqCst), 8 * (round + 1));
        database.age(2 * PURGE_MARGIN);
    }
    println!("the purge won {purged} of 40 rounds");
    assert_eq!(
        repo.purge(Duration::ZERO).await.unwrap(),
        1,
        "nobody is after it any more"
    );
}

/// An operator may block a lease by hand with an infinite expiry: it is busy, not an error.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn infinite_times_and_absurd_durations_are_no_errors() {
    let (database, repo) = Database::migrated().await;
    repo.acquire(&claim("job")).await.unwrap();
    let by_hand = "UPDATE task_leases SET expires_at = 'infinity'";
    database.run(by_hand);
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Busy(Some(_))
    ));
    assert!(repo.get(&name("job")).await.unwrap().unwrap().is_live());
    assert_eq!(repo.purge(Duration::MAX).await.unwrap(), 0);
    let minimum = claim("other").at_least_for(Duration::MAX);
    repo.acquire(&minimum).await.unwrap();
    assert_eq!(repo.release(&minimum).await.unwrap(), Release::Released);
    assert!(matches!(
        repo.acquire(&claim("other")).await.unwrap(),
        Acquire::Busy(Some(_))
    ));
}

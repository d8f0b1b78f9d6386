//! The laws where the server's locks, clocks and rows decide.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use lease_core::{Acquire, Inspect, Loss, PURGE_MARGIN, Release, Renew, Repo};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::{Dialect, Mysql, Proxy, Settings};
use mysql_async::prelude::Queryable;

use crate::support::{Database, claim, on_both, pool};

const S: Duration = Duration::from_secs(1);

on_both!(
    operations_touch_no_other_row,
    a_retried_acquire_keeps_token_and_start_and_extends,
    a_ttl_below_a_second_is_kept_to_the_microsecond,
    times_are_read_after_a_wait_for_the_row,
    a_renewal_that_waited_past_the_expiry_is_lost,
    a_loser_waits_for_nobody,
    a_tenure_between_look_and_insert_has_the_smaller_token,
    a_purge_leaves_a_locked_row_and_goes_on,
    a_purge_races_a_counter,
    absurd_durations_are_no_errors,
    with_a_clock_that_stands_still_an_expiry_is_early_and_nothing_else,
);

/// C1.
async fn operations_touch_no_other_row(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let (a, b) = (claim("a"), claim("b"));
    repo.acquire(&a).await.unwrap();
    repo.acquire(&b).await.unwrap();
    database.age(60 * S);
    let before = database.row(&b.name);
    assert!(before.is_some());
    assert_eq!(repo.renew(&a).await.unwrap(), Renew::Lost(Loss::Expired));
    assert!(matches!(repo.acquire(&a).await.unwrap(), Acquire::Granted(_)));
    assert_eq!(repo.renew(&a).await.unwrap(), Renew::Renewed);
    assert_eq!(repo.release(&a).await.unwrap(), Release::Released);
    assert_eq!(database.row(&b.name), before);
}

/// C51.
async fn a_retried_acquire_keeps_token_and_start_and_extends(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
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
async fn a_ttl_below_a_second_is_kept_to_the_microsecond(dialect: Dialect) {
    let (_database, repo) = Database::migrated(dialect).await;
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
async fn times_are_read_after_a_wait_for_the_row(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let mut held = claim("job");
    held.ttl = 5 * S;
    repo.acquire(&held).await.unwrap();
    for change in [
        "SELECT 1 FROM task_leases FOR UPDATE",
        "UPDATE task_leases SET note = CONCAT(COALESCE(note, ''), 'x')",
    ] {
        for retry in [false, true] {
            let mut locker = database.sql().await;
            locker.query_drop("BEGIN").await.unwrap();
            locker.query_drop(change).await.unwrap();
            let (other, claim) = (repo.clone(), held.clone());
            let waiting = tokio::spawn(async move {
                if retry {
                    matches!(other.acquire(&claim).await.unwrap(), Acquire::Granted(_))
                } else {
                    other.renew(&claim).await.unwrap() == Renew::Renewed
                }
            });
            locker.query_drop("DO SLEEP(1)").await.unwrap();
            let now = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
            let until: i64 = locker.query_first(now).await.unwrap().unwrap();
            locker.query_drop("COMMIT").await.unwrap();
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
async fn a_renewal_that_waited_past_the_expiry_is_lost(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let mut held = claim("job");
    held.ttl = Duration::from_millis(500);
    repo.acquire(&held).await.unwrap();
    let mut locker = database.sql().await;
    locker.query_drop("BEGIN").await.unwrap();
    locker.query_drop("SELECT 1 FROM task_leases FOR UPDATE").await.unwrap();
    let (other, claim) = (repo.clone(), held.clone());
    let waiting = tokio::spawn(async move { other.renew(&claim).await.unwrap() });
    locker.query_drop("DO SLEEP(1)").await.unwrap();
    locker.query_drop("COMMIT").await.unwrap();
    assert_eq!(waiting.await.unwrap(), Renew::Lost(Loss::Expired));
}

/// Who does not get the lease only looks, so that a locked row is busy at once. An expired one under a lock is waited for, until
/// the limit.
async fn a_loser_waits_for_nobody(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    let mut locker = database.sql().await;
    locker.query_drop("BEGIN").await.unwrap();
    locker.query_drop("SELECT 1 FROM task_leases FOR UPDATE").await.unwrap();
    let mut loser = claim("job");
    // Far below the lock's end, which is the end of this test.
    loser.limit = 2 * S;
    assert!(matches!(repo.acquire(&loser).await.unwrap(), Acquire::Busy(Some(_))));
    let strict = pool(&database.url, 1, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    let strict = MysqlRepo::new(strict).unwrap();
    assert!(matches!(strict.acquire(&loser).await.unwrap(), Acquire::Busy(Some(_))));
    locker.query_drop("COMMIT").await.unwrap();
    database.age(60 * S);
    locker.query_drop("BEGIN").await.unwrap();
    locker.query_drop("SELECT 1 FROM task_leases FOR UPDATE").await.unwrap();
    let refused = repo.acquire(&loser).await.unwrap();
    assert!(
        matches!(refused, Acquire::Busy(None)),
        "an open fence holds off a takeover: {refused:?}"
    );
    locker.query_drop("COMMIT").await.unwrap();
    assert!(matches!(repo.acquire(&loser).await.unwrap(), Acquire::Granted(_)));
}

/// C35. The token used to be that of the look, and the one of a whole tenure after it was larger.
async fn a_tenure_between_look_and_insert_has_the_smaller_token(dialect: Dialect) {
    let (database, direct) = Database::migrated(dialect).await;
    let direct = direct.delete_on_release(true);
    let proxy = Proxy::before(&database.url).await.unwrap();
    let slow = MysqlRepo::connect(&proxy.url).await.unwrap();
    // With its statements prepared, the next reply is that to the look.
    slow.acquire(&claim("warm")).await.unwrap();
    proxy.keep_next_reply();
    let held = claim("job");
    let acquiring = slow.acquire(&held);
    let tenure = async {
        proxy.keeps_a_reply().await;
        let between = claim("job");
        let answer = direct.acquire(&between).await.unwrap();
        assert_eq!(direct.release(&between).await.unwrap(), Release::Released);
        assert_eq!(database.row(&between.name), None, "the row is gone");
        proxy.let_go();
        answer
    };
    let (late, between) = tokio::join!(acquiring, tenure);
    let (Acquire::Granted(late), Acquire::Granted(between)) = (late.unwrap(), between) else {
        panic!("both were granted, one after the other")
    };
    assert!(late > between, "{late:?} is not above {between:?}");
    assert!(database.row(&held.name).unwrap().contains(&late.get().to_string()));
    assert_eq!(slow.renew(&held).await.unwrap(), Renew::Renewed);
}

/// A real wait, of the five seconds that a session of ours waits for a lock.
async fn a_purge_leaves_a_locked_row_and_goes_on(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    for name in ["a", "b", "c"] {
        repo.acquire(&claim(name)).await.unwrap();
    }
    database.age(2 * PURGE_MARGIN);
    let mut locker = database.sql().await;
    locker.query_drop("BEGIN").await.unwrap();
    let fence = "SELECT 1 FROM task_leases WHERE name = 'b' FOR UPDATE";
    locker.query_drop(fence).await.unwrap();
    assert_eq!(repo.purge(Duration::ZERO).await.unwrap(), 2);
    locker.query_drop("COMMIT").await.unwrap();
    assert_eq!(repo.purge(Duration::ZERO).await.unwrap(), 1);
}

/// C54. The row has been free for long, so that in each round the purge and eight clients are after it.
async fn a_purge_races_a_counter(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let counter = Arc::new(AtomicI64::new(0));
    let last_token = Arc::new(AtomicI64::new(0));
    let mut held = claim("another");
    held.ttl = 86_400 * S;
    repo.acquire(&held).await.unwrap();

    for round in 0..20 {
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
        purging.await.unwrap();
        assert_eq!(counter.load(Ordering::SeqCst), 8 * (round + 1));
        database.age(2 * PURGE_MARGIN);
    }
    assert_eq!(
        repo.purge(Duration::ZERO).await.unwrap(),
        1,
        "nobody is after it any more"
    );
}

async fn absurd_durations_are_no_errors(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    repo.acquire(&claim("job")).await.unwrap();
    database.run("UPDATE task_leases SET expires_at = '9999-12-31 23:59:59.999999'");
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Busy(Some(_))
    ));
    assert!(repo.get(&claim("job").name).await.unwrap().unwrap().is_live());
    let minimum = claim("other").at_least_for(Duration::MAX);
    repo.acquire(&minimum).await.unwrap();
    assert_eq!(repo.release(&minimum).await.unwrap(), Release::Released);
    assert!(matches!(
        repo.acquire(&claim("other")).await.unwrap(),
        Acquire::Busy(Some(_))
    ));
    assert_eq!(repo.purge(Duration::MAX).await.unwrap(), 0);
}

/// `--sysdate-is-now`: the statements have only the time at which they began. A real wait of a second.
async fn with_a_clock_that_stands_still_an_expiry_is_early_and_nothing_else(dialect: Dialect) {
    let server = Mysql::private(dialect, &Settings::default().with("sysdate_is_now", "ON")).unwrap();
    let database = Database::on(&server);
    let repo = database.repo().await;
    repo.migrate().await.unwrap();
    let held = claim("job");
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    let mut locker = database.sql().await;
    locker.query_drop("BEGIN").await.unwrap();
    locker.query_drop("SELECT 1 FROM task_leases FOR UPDATE").await.unwrap();
    let now = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
    let before: i64 = locker.query_first(now).await.unwrap().unwrap();
    let (other, claim) = (repo.clone(), held.clone());
    let waiting = tokio::spawn(async move { other.renew(&claim).await.unwrap() });
    locker.query_drop("DO SLEEP(1)").await.unwrap();
    locker.query_drop("COMMIT").await.unwrap();
    assert_eq!(waiting.await.unwrap(), Renew::Renewed);
    let row = repo.get(&held.name).await.unwrap().unwrap();
    let ttl_us = 30_000_000;
    assert!(row.expires_at.as_micros() >= before + ttl_us, "not before it was sent");
    assert!(
        row.expires_at.as_micros() < row.read_at.as_micros() + ttl_us - 500_000,
        "but by the wait too early"
    );
}

//! Locks of other processes are waited out as long as there is time, and whoever only loses waits for none.

use std::thread;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use lease_sqlite::lease_core::{Acquire, BootClock, Clock, Release, Renew, Repo, RepoErrorKind};

use crate::support::{Database, chain, claim};

/// Keeps the file's write lock for a while; it is taken when this returns.
fn locked(database: &Database, time: Duration) -> thread::JoinHandle<()> {
    let mut connection = database.sql();
    connection.batch_execute("BEGIN IMMEDIATE").unwrap();
    thread::spawn(move || {
        thread::sleep(time);
        connection.batch_execute("COMMIT").unwrap();
    })
}

#[tokio::test]
async fn c40_a_write_lock_of_a_second_costs_no_renewal() {
    let database = Database::migrated().await;
    let repo = database.repo().await;
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    let lock = locked(&database, Duration::from_secs(1));
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    lock.join().unwrap();
    let lock = locked(&database, Duration::from_secs(1));
    assert_eq!(repo.release(&held).await.unwrap(), Release::Released);
    lock.join().unwrap();
}

#[tokio::test]
async fn a_write_lock_for_longer_than_the_limit_is_a_conflict_in_time() {
    let database = Database::migrated().await;
    let repo = database.repo().await;
    let held = claim("job").limit(Duration::from_millis(300));
    repo.acquire(&held).await.unwrap();
    let lock = locked(&database, Duration::from_secs(3));
    let start = BootClock.now();
    let error = repo.renew(&held).await.unwrap_err();
    // The margin is for a busy machine; what is tested is that it does not wait for the lock.
    assert!(BootClock.now().since(start) < Duration::from_secs(2));
    assert!(
        matches!(error.kind(), RepoErrorKind::Conflict | RepoErrorKind::Timeout),
        "{}",
        chain(&error)
    );
    lock.join().unwrap();
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed, "the repo is sound");
}

#[tokio::test]
async fn a_loser_only_reads() {
    let database = Database::migrated().await;
    let repo = database.repo().await;
    repo.acquire(&claim("job")).await.unwrap();
    let mut connection = database.sql();
    connection.batch_execute("BEGIN IMMEDIATE").unwrap();
    for _ in 0..10 {
        assert!(matches!(
            repo.acquire(&claim("job")).await.unwrap(),
            Acquire::Busy(Some(_))
        ));
    }
    connection.batch_execute("ROLLBACK").unwrap();
}

/// The clock is read once the lock is there, so that a ttl counts from then on.
#[tokio::test]
async fn c36_times_are_read_after_a_wait_for_the_lock() {
    let database = Database::migrated().await;
    let repo = database.repo().await;
    let mut held = claim("job");
    held.ttl = Duration::from_secs(2);
    repo.acquire(&held).await.unwrap();
    database.step_clock(0);
    let lock = locked(&database, Duration::from_secs(3));
    let renewed = repo.renew(&held).await.unwrap();
    lock.join().unwrap();
    assert!(
        matches!(renewed, Renew::Lost(_)),
        "it expired during the wait: {renewed:?}"
    );
}

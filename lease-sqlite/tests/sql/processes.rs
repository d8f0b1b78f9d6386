//! Several processes on one file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use diesel::sql_types::Text;
use diesel::{QueryableByName, RunQueryDsl};
use lease_sqlite::SqliteRepo;
use lease_sqlite::lease_core::{Acquire, Release, Repo};

use crate::support::{Database, claim};

/// Tells a process of these tests which file it is to work on.
const FILE: &str = "LEASE_SQLITE_TEST_FILE";

/// This test once more as a process of its own.
pub(crate) fn child(test: &str, file: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--include-ignored", "--nocapture"])
        .env(FILE, file)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

pub(crate) fn file() -> Option<String> {
    std::env::var(FILE).ok()
}

/// Takes the lease as soon as it is free, and gives it back after `work`.
async fn round(repo: &SqliteRepo, ttl: Duration, work: impl FnOnce()) {
    let mut claim = claim("job");
    claim.ttl = ttl;
    while !matches!(repo.acquire(&claim).await.unwrap(), Acquire::Granted(_)) {
        thread::sleep(Duration::from_micros(200));
    }
    work();
    assert_eq!(repo.release(&claim).await.unwrap(), Release::Released);
}

#[tokio::test]
async fn a_counter_of_eight_processes_is_exact() {
    const PROCESSES: usize = 8;
    const ROUNDS: usize = 500;
    if let Some(file) = file() {
        let repo = SqliteRepo::connect(&file).await.unwrap();
        let counter = format!("{file}.counter");
        for _ in 0..ROUNDS {
            round(&repo, Duration::from_secs(60), || {
                let count: usize = fs::read_to_string(&counter).unwrap().parse().unwrap();
                fs::write(&counter, (count + 1).to_string()).unwrap();
            })
            .await;
        }
        return;
    }
    let database = Database::migrated().await;
    let path = database.path.to_str().unwrap();
    let counter = format!("{path}.counter");
    fs::write(&counter, "0").unwrap();
    let test = "processes::a_counter_of_eight_processes_is_exact";
    let children: Vec<Child> = (0..PROCESSES).map(|_| child(test, path)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(fs::read_to_string(counter).unwrap(), (PROCESSES * ROUNDS).to_string());
}

/// A failed or second look at the file opened it only to see whether it may, and closed it. That took all locks of this process
/// on it away, and another process could have removed the write-ahead log under it.
#[tokio::test]
async fn a_look_at_the_file_takes_no_locks_of_this_process_away() {
    // The first makes the table itself: a repo that was dropped closes the file on its own thread, and has one more lock meanwhile.
    let database = Database::empty();
    let first = database.repo().await;
    first.migrate().await.unwrap();
    assert!(matches!(
        first.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
    // Linux lists all locks, by the number of their file.
    let number = format!(":{} ", fs::metadata(&database.path).unwrap().ino());
    let locks = || fs::read_to_string("/proc/locks").unwrap().matches(&number).count();
    assert_eq!(locks(), 1, "SQLite keeps one while it has the file open");
    let second = database.repo().await;
    assert_eq!(locks(), 1);
    drop((first, second));
}

#[derive(QueryableByName)]
struct Check {
    #[diesel(sql_type = Text)]
    integrity_check: String,
}

/// As kill(1) and the kernel's hunt for memory do it. A write is always under way, so some are cut in the middle.
#[tokio::test]
async fn a_process_killed_in_the_middle_of_a_write_leaves_a_sound_file_and_its_lease_frees_itself() {
    const TTL: Duration = Duration::from_millis(300);
    if let Some(file) = file() {
        let repo = SqliteRepo::connect(&file).await.unwrap();
        fs::write(format!("{file}.ready"), "").unwrap();
        loop {
            round(&repo, TTL, || {}).await;
        }
    }
    let database = Database::migrated().await;
    let path = database.path.to_str().unwrap();
    let ready = format!("{path}.ready");
    let test = "processes::a_process_killed_in_the_middle_of_a_write_leaves_a_sound_file_and_its_lease_frees_itself";
    let repo = database.repo().await;
    for number in 0..20 {
        let mut child = child(test, path);
        while !fs::exists(&ready).unwrap() {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            thread::sleep(Duration::from_millis(1));
        }
        // Not always at the same point.
        thread::sleep(Duration::from_micros(1_000 + number * 737));
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(&ready).unwrap();
        let checks: Vec<Check> = diesel::sql_query("PRAGMA integrity_check")
            .load(&mut database.sql())
            .unwrap();
        assert_eq!(checks.len(), 1);
        assert_eq!(checks[0].integrity_check, "ok");
        round(&repo, TTL, || {}).await;
    }
}

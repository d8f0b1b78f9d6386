//! What is special about folders: processes beside each other, deaths in the middle, damage, and each way to fail.

use std::error::Error;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use lease_folder::FolderRepo;
use lease_folder::lease_core::{
    Acquire, Claim, Inspect, Label, LeaseName, Release, Renew, Repo, RepoError, RepoErrorKind,
};
use tempfile::TempDir;

/// Tells a process of these tests which folder it is to work on.
const FOLDER: &str = "LEASE_FOLDER_TEST";

/// This test once more as a process of its own.
fn child(test: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn folder_of_a_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// A claim of a holder of its own.
fn claim(lease: &str, ttl: Duration) -> Claim {
    let name = LeaseName::new(lease).unwrap();
    Claim::new(name, Label::new("pod").unwrap().new_holder(), ttl).limit(Duration::from_secs(30))
}

const MINUTE: Duration = Duration::from_secs(60);

/// Takes the lease as soon as it is free, and gives it back after `work`.
async fn round(repo: &FolderRepo, ttl: Duration, work: impl FnOnce(i64)) {
    let claim = claim("job", ttl);
    let token = loop {
        match repo.acquire(&claim).await.unwrap() {
            Acquire::Granted(token) => break token.get(),
            Acquire::Busy(_) => thread::sleep(Duration::from_micros(200)),
        }
    };
    work(token);
    assert_eq!(repo.release(&claim).await.unwrap(), Release::Released);
}

/// The files of leases, and `new` if it is there.
fn files(folder: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn chain(error: &RepoError) -> String {
    let source = error.source().map(ToString::to_string).unwrap_or_default();
    format!("{error}: {source}")
}

#[tokio::test]
async fn a_counter_of_eight_processes_is_exact() {
    const PROCESSES: usize = 8;
    const ROUNDS: usize = 50;
    if let Some(folder) = folder_of_a_child() {
        let repo = FolderRepo::open(&folder).await.unwrap();
        let counter = folder.join("counter");
        for _ in 0..ROUNDS {
            round(&repo, MINUTE, |token| {
                let text = fs::read_to_string(&counter).unwrap();
                let (count, before) = text.split_once(' ').unwrap();
                assert!(token > before.parse().unwrap(), "tokens grow: {token} after {before}");
                let count: usize = count.parse().unwrap();
                fs::write(&counter, format!("{} {token}", count + 1)).unwrap();
            })
            .await;
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("counter");
    fs::write(&counter, "0 0").unwrap();
    let test = "a_counter_of_eight_processes_is_exact";
    let children: Vec<Child> = (0..PROCESSES).map(|_| child(test, folder.path())).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let text = fs::read_to_string(counter).unwrap();
    assert_eq!(text.split_once(' ').unwrap().0, (PROCESSES * ROUNDS).to_string());
}

/// A write is always under way, so some are cut in the middle.
#[tokio::test]
async fn a_process_killed_in_the_middle_of_a_write_leaves_a_sound_row_and_its_lease_frees_itself() {
    const TTL: Duration = Duration::from_millis(200);
    if let Some(folder) = folder_of_a_child() {
        let repo = FolderRepo::open(&folder).await.unwrap();
        fs::write(folder.join("ready"), "").unwrap();
        loop {
            round(&repo, TTL, |_| {}).await;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let test = "a_process_killed_in_the_middle_of_a_write_leaves_a_sound_row_and_its_lease_frees_itself";
    let repo = FolderRepo::open(folder.path()).await.unwrap();
    let mut last = 0;
    for number in 0..20 {
        let mut child = child(test, folder.path());
        while !fs::exists(&ready).unwrap() {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            thread::sleep(Duration::from_millis(1));
        }
        // Not always at the same point.
        thread::sleep(Duration::from_micros(2_000 + number * 737));
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(&ready).unwrap();
        assert!(repo.list().await.unwrap().len() <= 1);
        round(&repo, TTL, |token| {
            assert!(token > last, "tokens grow over a death");
            last = token;
        })
        .await;
    }
}

/// What a crash between the writing of `new` and its renaming leaves, though it be another user's.
#[tokio::test]
async fn what_a_crash_left_half_written_is_neither_a_row_nor_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let repo = FolderRepo::open(folder.path()).await.unwrap();
    let new = folder.path().join("new");
    fs::write(&new, "{\"name\":\"job\",\"hol").unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(repo.list().await.unwrap(), []);
    round(&repo, MINUTE, |_| {}).await;
    assert!(!fs::exists(&new).unwrap(), "it was replaced, and renamed");
    assert_eq!(repo.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_damaged_row_is_an_error_that_names_its_file_and_never_a_free_lease() {
    let folder = tempfile::tempdir().unwrap();
    let repo = FolderRepo::open(folder.path()).await.unwrap();
    let held = claim("job", MINUTE);
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    let file = files(&folder).pop().unwrap();
    let sound = fs::read_to_string(&file).unwrap();
    let damages = [
        String::new(),
        sound[..sound.len() / 2].to_owned(),
        sound.replace("\"job\"", "\"another\""),
        sound.replace("\"job\"", "\" job\""),
        sound.replace("\"token\": ", "\"token\": 1e99"),
        sound.replace("\"note\"", "\"remark\""),
        "\u{0}".repeat(4_096),
    ];
    for damaged in damages {
        assert_ne!(damaged, sound);
        fs::write(&file, &damaged).unwrap();
        let other = claim("job", MINUTE);
        let errors = [
            repo.acquire(&other).await.map(drop).unwrap_err(),
            repo.renew(&held).await.map(drop).unwrap_err(),
            repo.release(&held).await.map(drop).unwrap_err(),
            repo.get(&held.name).await.map(drop).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), RepoErrorKind::Other, "{damaged}");
            assert!(!error.may_have_executed());
            let named = [
                file.file_name().unwrap().to_str().unwrap(),
                "that of LeaseName(\"another\")",
            ];
            let text = chain(&error);
            assert!(named.iter().any(|name| text.contains(name)), "{text}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), damaged, "nothing was changed");
    }
    fs::write(&file, sound).unwrap();
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
}

/// Numbers at the ends of their range: no arithmetic of ours may panic on them.
#[tokio::test]
async fn a_row_of_extreme_numbers_panics_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let repo = FolderRepo::open(folder.path()).await.unwrap();
    let held = claim("job", Duration::MAX);
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    let file = files(&folder).pop().unwrap();
    let sound = fs::read_to_string(&file).unwrap();
    let row: serde_json::Value = serde_json::from_str(&sound).unwrap();
    for key in ["token", "acquired_at", "expires_at", "released_at"] {
        for number in [i64::MIN, -1, 0, i64::MAX] {
            let mut row = row.clone();
            row[key] = number.into();
            fs::write(&file, row.to_string()).unwrap();
            let by = (Label::new("op").unwrap(), "why".parse().unwrap());
            let _ = repo.list().await.unwrap();
            let _ = repo.renew(&held).await.unwrap();
            let _ = repo.evict(&held.name, &by.0, &by.1).await.unwrap();
            repo.pause(&held.name, Duration::MAX, &by.0, &by.1).await.unwrap();
            let _ = repo.resume(&held.name).await.unwrap();
            let _ = repo.acquire(&claim("job", MINUTE)).await.unwrap();
            let _ = repo.release(&held).await.unwrap();
            let _ = repo.purge(Duration::MAX).await.unwrap();
        }
    }
}

#[tokio::test]
async fn no_name_leaves_the_folder_or_meets_another() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("leases");
    fs::create_dir(&folder).unwrap();
    let repo = FolderRepo::open(&folder).await.unwrap();
    let long = "\u{1f980}".repeat(32);
    let names = [
        "..",
        ".",
        "../job",
        "/etc/job",
        "job",
        "Job",
        "JOB",
        "new",
        "job.lease",
        "*",
        "a\\b",
        &long,
    ];
    for name in names {
        let granted = repo.acquire(&claim(name, MINUTE)).await.unwrap();
        assert!(matches!(granted, Acquire::Granted(_)), "{name}");
    }
    assert_eq!(fs::read_dir(above.path()).unwrap().count(), 1);
    let mut files: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().to_lowercase())
        .collect();
    files.sort();
    files.dedup();
    assert_eq!(files.len(), names.len(), "also where a disk folds case");
    assert!(files.iter().all(|file| file.len() <= 255));
    let listed = repo.list().await.unwrap();
    let mut sorted = names;
    sorted.sort_unstable();
    assert_eq!(listed.iter().map(|row| &*row.name).collect::<Vec<_>>(), sorted);
}

#[tokio::test]
async fn a_folder_that_others_keep_locked_is_a_conflict_within_the_limit_and_readers_do_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let repo = FolderRepo::open(folder.path()).await.unwrap();
    let held = claim("job", MINUTE);
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    let lock = File::open(folder.path()).unwrap();
    lock.lock().unwrap();
    let error = repo
        .renew(&held.clone().limit(Duration::from_millis(100)))
        .await
        .unwrap_err();
    // The time is up at the same moment for who waits and for who works.
    assert!(
        matches!(error.kind(), RepoErrorKind::Conflict | RepoErrorKind::Timeout),
        "{error}"
    );
    assert!(matches!(
        repo.acquire(&claim("job", MINUTE)).await.unwrap(),
        Acquire::Busy(Some(_))
    ));
    assert!(repo.get(&held.name).await.unwrap().is_some());
    drop(lock);
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
}

#[tokio::test]
async fn each_way_in_which_a_folder_can_not_be_used_has_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leases");
    let opened = async || FolderRepo::open(&path).await.unwrap_err();
    assert_eq!(opened().await.kind(), RepoErrorKind::Config);
    symlink("loop", folder.path().join("loop")).unwrap();
    assert!(FolderRepo::open(folder.path().join("loop")).await.is_err());

    fs::create_dir(&path).unwrap();
    let repo = FolderRepo::open(&path).await.unwrap();
    let held = claim("job", MINUTE);
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    // A row that can't be read is no free lease.
    let file = fs::read_dir(&path).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(repo.acquire(&claim("job", MINUTE)).await.is_err());
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(repo.renew(&held).await.unwrap_err().kind(), RepoErrorKind::Config);
    // Made again, it is used: no two go on with two folders.
    fs::create_dir(&path).unwrap();
    assert!(matches!(
        repo.acquire(&claim("job", MINUTE)).await.unwrap(),
        Acquire::Granted(_)
    ));
    assert!(matches!(
        FolderRepo::open(&path)
            .await
            .unwrap()
            .acquire(&claim("job", MINUTE))
            .await
            .unwrap(),
        Acquire::Busy(Some(_))
    ));
}

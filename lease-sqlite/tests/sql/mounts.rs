//! File systems that are full or read-only: real ones, small, mounted in a namespace of the test's own process. And files of
//! another user.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use lease_sqlite::SqliteRepo;
use lease_sqlite::lease_core::{Renew, Repo, RepoErrorKind};

use crate::processes::file;
use crate::support::{Database, chain, claim};

/// Runs this test once more, as root of a mount namespace, with a small file system in its folder.
fn in_a_small_file_system(test: &str) {
    let database = Database::empty();
    let folder = database.folder.path().to_str().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=512k tmpfs {folder} && exec \"$0\" --exact {test} --include-ignored --nocapture"
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env("LEASE_SQLITE_TEST_FILE", &database.path)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
#[ignore = "needs root: cargo xtask test"]
async fn a_full_disk_is_named_and_what_was_held_is_held_when_there_is_room_again() {
    let Some(file) = file() else {
        return in_a_small_file_system(
            "mounts::a_full_disk_is_named_and_what_was_held_is_held_when_there_is_room_again",
        );
    };
    let repo = SqliteRepo::connect(&file).await.unwrap();
    repo.migrate().await.unwrap();
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    let filler = format!("{file}.filler");
    let mut error = None;
    for size in (0..1_000_000).step_by(4_096) {
        // As much as still fits.
        let _ = fs::write(&filler, vec![b'x'; size]);
        if let Err(refused) = repo.renew(&held).await {
            error = Some(refused);
            break;
        }
    }
    let error = error.expect("it never was full");
    assert_eq!(error.kind(), RepoErrorKind::Other, "{}", chain(&error));
    assert!(chain(&error).contains("full"), "{}", chain(&error));
    assert!(!error.may_have_executed());
    fs::remove_file(&filler).unwrap();
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
}

#[tokio::test]
#[ignore = "needs root: cargo xtask test"]
async fn a_read_only_file_system_is_named_and_used_again_when_it_is_writable() {
    let Some(file) = file() else {
        return in_a_small_file_system("mounts::a_read_only_file_system_is_named_and_used_again_when_it_is_writable");
    };
    let folder = std::path::Path::new(&file).parent().unwrap();
    let remount = |how: &str| {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,{how}")])
            .arg(folder)
            .status();
        assert!(status.unwrap().success());
    };
    let repo = SqliteRepo::connect(&file).await.unwrap();
    repo.migrate().await.unwrap();
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    drop(repo);
    // What has a file open for writing keeps the file system from being made read-only.
    let mut tries = 0;
    while Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(folder)
        .output()
        .map(|output| !output.status.success())
        .unwrap()
    {
        tries += 1;
        assert!(tries < 10_000, "its thread still has the file open");
    }
    let error = SqliteRepo::connect(&file).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::ReadOnly, "{}", chain(&error));
    remount("rw");
    let repo = SqliteRepo::connect(&file).await.unwrap();
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
}

/// What a user without rights is told, for each kind of right that is missing.
#[tokio::test]
#[ignore = "needs root: cargo xtask test"]
async fn rights_that_are_missing_are_named() {
    const NOBODY: u32 = 65_534;
    if let Some(file) = file() {
        let (file, kind) = file.split_once(' ').unwrap();
        let error = SqliteRepo::connect(file).await.unwrap_err();
        assert_eq!(error.kind().as_str(), kind, "{}", chain(&error));
        assert!(chain(&error).contains("leases.db"), "{}", chain(&error));
        return;
    }
    for (of_folder, of_file, kind) in [
        (0o755, 0o644, "read_only"),
        (0o755, 0o666, "read_only"),
        (0o755, 0o600, "denied"),
        (0o700, 0o666, "denied"),
    ] {
        let database = Database::migrated().await;
        fs::set_permissions(&database.path, Permissions::from_mode(of_file)).unwrap();
        fs::set_permissions(database.folder.path(), Permissions::from_mode(of_folder)).unwrap();
        let test = "mounts::rights_that_are_missing_are_named";
        // Where the program of the test is, that user need not be allowed to be.
        let program = std::env::temp_dir().join(format!("lease-sqlite-test-{}", std::process::id()));
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let output = Command::new(&program)
            .args(["--exact", test, "--include-ignored", "--nocapture"])
            .current_dir("/")
            .env("LEASE_SQLITE_TEST_FILE", format!("{} {kind}", database.path.display()))
            .uid(NOBODY)
            .gid(NOBODY)
            .output();
        fs::remove_file(program).unwrap();
        let output = output.unwrap();
        assert!(
            output.status.success(),
            "{of_folder:o} {of_file:o}\n{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

//! The suite that every backend passes, on a folder.

use std::fs::{self, File};

use lease_folder::FolderRepo;
use lease_testkit::{Harness, conformance};
use serde_json::Value;
use tempfile::TempDir;

struct Temporary(TempDir);

impl Harness for Temporary {
    type Repo = FolderRepo;

    async fn open() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    async fn client(&self) -> FolderRepo {
        FolderRepo::open(self.0.path())
            .await
            .expect("a folder that can be locked")
    }

    async fn step_clock(&self, by_us: i64) {
        let folder = File::open(self.0.path()).expect("the folder");
        folder.lock().expect("its lock");
        for entry in fs::read_dir(self.0.path()).expect("the folder") {
            let path = entry.expect("a file").path();
            if path.extension().is_some_and(|ending| ending == "lease") {
                let bytes = fs::read(&path).expect("a row");
                let mut row: Value = serde_json::from_slice(&bytes).expect("JSON");
                for time in ["acquired_at", "expires_at", "released_at"] {
                    if let Some(us) = row[time].as_i64() {
                        row[time] = (us - by_us).into();
                    }
                }
                let token = row["token"].as_i64().expect("a token");
                row["token"] = (token - by_us.min(0)).into();
                fs::write(&path, row.to_string()).expect("a row");
            }
        }
    }
}

conformance!(Temporary; inspect);

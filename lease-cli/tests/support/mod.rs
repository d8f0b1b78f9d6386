//! What the tests of the binary share.

#![allow(dead_code, reason = "not every test program needs all of it")]

pub mod running;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use lease_core::{BootClock, Clock};
use serde_json::Value;
use tempfile::TempDir;

/// A program for which no signal is ignored, whatever whoever runs the tests has ignored: as `nohup` does, and a shell for
/// what it runs in the background.
pub fn program(path: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", path]);
    command
}

/// Nothing of who runs the tests reaches it, but for where programs are.
pub fn lease(arguments: &[&str]) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_lease"));
    command.args(arguments).env_clear().env("USER", "ann");
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command
}

pub struct Said {
    pub out: String,
    pub err: String,
    pub code: i32,
}

pub fn said(command: &mut Command) -> Said {
    let Output { stdout, stderr, status } = command.output().unwrap();
    let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    match status.code() {
        Some(code) => Said { out, err, code },
        None => panic!("{command:?}: {status}: {out}{err}"),
    }
}

/// The arguments that pause a lease for an hour.
pub fn pause(name: &str) -> [&str; 8] {
    [
        "pause",
        name,
        "--for",
        "1h",
        "--reason",
        "a disk is full",
        "--by",
        "ops",
    ]
}

/// A file with leases of a test's own, named by `LEASE_URL`, and a folder for more.
pub struct World {
    pub folder: TempDir,
    pub url: String,
}

impl World {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let url = format!("sqlite:{}/leases.db", folder.path().display());
        Self { folder, url }
    }

    pub fn on(url: &str) -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            url: url.to_owned(),
        }
    }

    pub fn lease(&self, arguments: &[&str]) -> Command {
        let mut command = lease(arguments);
        command.env("LEASE_URL", &self.url);
        command
    }

    pub fn says(&self, arguments: &[&str]) -> Said {
        said(&mut self.lease(arguments))
    }

    /// Which must succeed.
    pub fn text(&self, arguments: &[&str]) -> String {
        let said = self.says(arguments);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{arguments:?}");
        said.out
    }

    /// A value, whatever the exit code.
    pub fn json(&self, arguments: &[&str]) -> (Value, i32) {
        let said = self.says(&[arguments, &["--json"]].concat());
        assert_eq!(said.err, "", "{arguments:?}");
        (serde_json::from_str(&said.out).unwrap(), said.code)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Waits until something is so. Nothing here takes as long as this waits.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = BootClock.now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(BootClock.now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How many processes `sleep` so long.
pub fn sleeping(time: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let wanted = format!("sleep\0{time}\0");
    let found = processes
        .filter(|process| matches!(fs::read(process.path().join("cmdline")), Ok(line) if line == wanted.as_bytes()));
    found.count()
}

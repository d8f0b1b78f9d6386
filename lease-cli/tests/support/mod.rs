//! The real binary, and a database of a test's own.

#![allow(dead_code, reason = "each test target uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

pub(crate) mod running;

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Nothing of who runs the tests reaches it.
pub(crate) fn lease(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lease"));
    command.args(arguments).env_clear().env("USER", "ann");
    command
}

pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: i32,
}

pub(crate) fn said(command: &mut Command) -> Said {
    let Output { stdout, stderr, status } = command.output().unwrap();
    let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    match status.code() {
        Some(code) => Said { out, err, code },
        None => panic!("{command:?}: {status}: {out}{err}"),
    }
}

/// A file of a test's own, named by `LEASE_URL`.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) url: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let url = format!("sqlite:{}/leases.db", folder.path().display());
        Self { folder, url }
    }

    pub(crate) fn on(url: &str) -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            url: url.to_owned(),
        }
    }

    pub(crate) fn says(&self, arguments: &[&str]) -> Said {
        said(lease(arguments).env("LEASE_URL", &self.url))
    }

    /// Which must succeed.
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        let said = self.says(arguments);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{arguments:?}");
        said.out
    }

    /// A value, whatever the exit code.
    pub(crate) fn json(&self, arguments: &[&str]) -> (Value, i32) {
        let said = self.says(&[arguments, &["--json"]].concat());
        assert_eq!(said.err, "", "{arguments:?}");
        (serde_json::from_str(&said.out).unwrap(), said.code)
    }
}

pub(crate) fn pause(name: &str) -> [&str; 8] {
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

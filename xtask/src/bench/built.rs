//! [`Built`]: the programs of `bench/`, and why one is missing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::report::note;
use crate::run::{cargo, root, shown};

/// A package with a lock file of its own, or the one with ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Package {
    Ours,
    Distributed,
    Sessions,
    Autumn,
}

impl Package {
    const ALL: [Self; 4] = [Self::Ours, Self::Distributed, Self::Sessions, Self::Autumn];

    /// Where its manifest is, below `bench/`.
    const fn folder(self) -> &'static str {
        match self {
            Self::Ours => ".",
            Self::Distributed => "peers/distributed",
            Self::Sessions => "peers/sessions",
            Self::Autumn => "peers/autumn",
        }
    }

    const fn program(self) -> &'static str {
        match self {
            Self::Ours => "bench-ours",
            Self::Distributed => "bench-distributed",
            Self::Sessions => "bench-sessions",
            Self::Autumn => "bench-autumn",
        }
    }

    /// The crates whose versions the document names.
    const fn shown(self) -> &'static [&'static str] {
        match self {
            Self::Ours => &[
                "lease-core",
                "tokio",
                "tokio-postgres",
                "diesel-async",
                "mysql_async",
                "rusqlite",
                "libsqlite3-sys",
            ],
            Self::Distributed => &["distributed", "sqlx", "libsqlite3-sys"],
            Self::Sessions => &["distributed-lock-postgres", "distributed-lock-mysql", "sqlx"],
            Self::Autumn => &["autumn-web", "diesel-async", "tokio-postgres"],
        }
    }
}

/// What could be built.
#[derive(Debug)]
pub(super) struct Built {
    folder: PathBuf,
    missing: BTreeMap<Package, String>,
}

impl Built {
    /// Builds all of them, optimised, from their lock files.
    ///
    /// # Errors
    /// Ours can't be built. Another one that can't be is left out, with the reason.
    pub(super) fn build() -> anyhow::Result<Self> {
        let target = root().join("target/bench");
        let mut built = Self {
            folder: target.join("release"),
            missing: BTreeMap::new(),
        };
        for package in Package::ALL {
            let mut command = cargo(["build", "--release", "--locked", "--manifest-path"]);
            command.arg(root().join("bench").join(package.folder()).join("Cargo.toml"));
            command.arg("--target-dir").arg(&target);
            note(format_args!("$ {}", shown(&command)));
            let output = command.stdout(Stdio::null()).output().context("cannot start cargo")?;
            if output.status.success() {
                continue;
            }
            let text = String::from_utf8_lossy(&output.stderr);
            if package == Package::Ours {
                bail!("bench/ does not compile:\n{text}");
            }
            let first = text.lines().find(|line| line.starts_with("error"));
            let reason = format!("could not be built: {}", first.unwrap_or("cargo failed"));
            note(format_args!("{}: {reason}", package.program()));
            built.missing.insert(package, reason);
        }
        Ok(built)
    }

    /// The program of a package.
    ///
    /// # Errors
    /// It could not be built: why.
    pub(super) fn program(&self, package: Package) -> anyhow::Result<PathBuf> {
        if let Some(reason) = self.missing.get(&package) {
            bail!("{reason}");
        }
        Ok(self.folder.join(package.program()))
    }

    /// A program of the package with ours.
    pub(super) fn tool(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Which version of what is measured, from the lock files.
    pub(super) fn versions() -> anyhow::Result<Vec<(String, String)>> {
        let mut versions = Vec::new();
        for package in Package::ALL {
            let path = root().join("bench").join(package.folder()).join("Cargo.lock");
            let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let lock: Lock = toml::from_str(&text)?;
            for name in package.shown() {
                let found = lock.package.iter().filter(|one| one.name == *name);
                let all: Vec<&str> = found.map(|one| one.version.as_str()).collect();
                versions.push((format!("{} ({})", name, package.program()), all.join(", ")));
            }
        }
        Ok(versions)
    }
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
}

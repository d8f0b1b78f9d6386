//! Cargo subcommands that are not part of Rust: found, or built from source when asked to.

use anyhow::bail;

use crate::report::note;
use crate::run::{self, cargo};

/// A subcommand and the version that is built where it is missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
}

/// Licenses, banned crates and sources.
pub(crate) const DENY: Tool = Tool {
    name: "deny",
    version: "0.20.2",
};

/// Changes the code and sees whether a test notices.
pub(crate) const MUTANTS: Tool = Tool {
    name: "mutants",
    version: "27.1.0",
};

impl Tool {
    /// Whether this machine has it, in whatever version.
    pub(crate) fn is_there(self) -> bool {
        run::runs(&mut cargo([self.name, "--version"]))
    }

    /// Makes sure that it is there.
    ///
    /// # Errors
    ///
    /// It is missing and must not be installed, or could not be.
    pub(crate) fn ensure(self, install: bool) -> anyhow::Result<()> {
        let Self { name, version } = self;
        let package = format!("cargo-{name}");
        if self.is_there() {
            return Ok(());
        }
        if !install {
            bail!("{package} is missing: use --install, or `cargo install --locked {package}`");
        }
        note(format_args!("{package} {version} is built once; that takes minutes"));
        run::must(&mut cargo(["install", "--locked", &package, "--version", version]))
    }
}

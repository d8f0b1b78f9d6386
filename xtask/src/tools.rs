//! Programs that are not part of Rust: found, or built from source when asked to.

use std::process::{Command, Stdio};

use anyhow::bail;

use crate::report::note;
use crate::run::{self, cargo, root};

/// A program, and the version that is built where it is missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    /// Its package. `cargo-x` is called as `cargo x`.
    package: &'static str,
    version: &'static str,
    /// What else `cargo install` is told.
    options: &'static [&'static str],
}

/// Licenses, banned crates and sources.
pub(crate) const DENY: Tool = Tool {
    package: "cargo-deny",
    version: "0.20.2",
    options: &[],
};

/// Changes the code and sees whether a test notices.
pub(crate) const MUTANTS: Tool = Tool {
    package: "cargo-mutants",
    version: "27.1.0",
    options: &[],
};

/// The book. Without its web server.
pub(crate) const MDBOOK: Tool = Tool {
    package: "mdbook",
    version: "0.5.4",
    options: &["--no-default-features", "--features", "search"],
};

/// Whether an interface has changed as its version says.
pub(crate) const SEMVER: Tool = Tool {
    package: "cargo-semver-checks",
    version: "0.51.0",
    options: &[],
};

impl Tool {
    /// A call of it, at the root of the workspace, to which arguments can be added.
    pub(crate) fn command(self) -> Command {
        match self.package.strip_prefix("cargo-") {
            Some(verb) => cargo([verb]),
            None => {
                let mut command = Command::new(self.package);
                command.current_dir(root()).stdin(Stdio::null());
                command
            }
        }
    }

    /// Whether this machine has it, in whatever version.
    pub(crate) fn is_there(self) -> bool {
        run::runs(self.command().arg("--version"))
    }

    /// Makes sure that it is there.
    ///
    /// # Errors
    ///
    /// It is missing and must not be installed, or could not be.
    pub(crate) fn ensure(self, install: bool) -> anyhow::Result<()> {
        let Self {
            package,
            version,
            options,
        } = self;
        if self.is_there() {
            return Ok(());
        }
        if !install {
            bail!("{package} is missing: use --install, or `cargo install --locked {package}`");
        }
        note(format_args!("{package} {version} is built once; that takes minutes"));
        let command = ["install", "--locked", package, "--version", version];
        run::must(&mut cargo(command.iter().chain(options)))
    }
}

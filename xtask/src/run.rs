//! Running other programs, and taking the time.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::report::note;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    // Cargo sets it for `cargo run`; the value from compile time is stale once the folder has been moved.
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let package = PathBuf::from(package);
    package.parent().map_or_else(|| package.clone(), Path::to_path_buf)
}

/// The cargo that runs us, at the root of the workspace.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs to the end, with all output on standard error. True if it ended well.
///
/// # Errors
///
/// The program could not be started.
pub(crate) fn succeeds(command: &mut Command) -> anyhow::Result<bool> {
    Ok(status(command)?.success())
}

/// As [`succeeds`], for a program whose exit code says more.
///
/// # Errors
///
/// The program could not be started.
pub(crate) fn status(command: &mut Command) -> anyhow::Result<ExitStatus> {
    note(format_args!("$ {}", shown(command)));
    let status = command.stdin(Stdio::null()).stdout(std::io::stderr()).status();
    status.with_context(|| format!("cannot start {}", shown(command)))
}

/// As [`succeeds`], for a program that must end well.
///
/// # Errors
///
/// The program could not be started, or failed.
pub(crate) fn must(command: &mut Command) -> anyhow::Result<()> {
    if !succeeds(command)? {
        bail!("failed: {}", shown(command));
    }
    Ok(())
}

/// Runs to the end and returns what it wrote to standard output.
///
/// # Errors
///
/// The program could not be started, or failed.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        bail!("failed: {}", shown(command));
    }
    Ok(output.stdout)
}

/// Whether the program is there and runs; what it says is thrown away.
pub(crate) fn runs(command: &mut Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// The command as a person would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Where an executable of that name is, in `PATH` or in the folders of system programs.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut folders = env::split_paths(&path).chain(system);
    folders.find_map(|folder| Some(folder.join(program)).filter(|file| file.is_file()))
}

/// Seconds since its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "how long a tool took is no lease's time")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// How long that is ago.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// To a tenth, as tables show it.
    pub(crate) fn seconds(self) -> Value {
        json!((self.elapsed().as_secs_f64() * 10.0).round() / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_where_the_lock_file_is() {
        assert!(root().join("Cargo.lock").is_file());
    }

    #[test]
    fn failure_names_the_command() {
        let error = must(&mut cargo(["no-such-verb", "--flag"])).unwrap_err();
        assert_eq!(error.to_string(), "failed: cargo no-such-verb --flag");
    }

    #[test]
    fn shell_is_found_and_nonsense_is_not() {
        assert!(which("sh").is_some());
        assert!(which("no-such-program-anywhere").is_none());
    }
}

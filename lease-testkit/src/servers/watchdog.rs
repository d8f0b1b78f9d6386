use std::io::ErrorKind;
use std::process::{Child, Command, Stdio};

use super::ServerError;

/// Waits for the end of the owner, whose side of the pipe the kernel closes however it dies.
const WAIT: &str = "trap '' HUP INT TERM QUIT; while read -r _; do :; done\n";

/// A process that cleans up after the one which started it, also if that one is killed.
///
/// It reads from a pipe that only its owner holds. Dropping this closes the pipe and waits until all is clean.
#[derive(Debug)]
pub(super) struct Watchdog {
    child: Child,
}

impl Watchdog {
    /// Starts a watchdog that will run `cleanup`, a script for `sh` which finds `argument` in `$1`.
    pub(super) fn start(cleanup: &str, argument: &str) -> Result<Self, ServerError> {
        let script = format!("{WAIT}{cleanup}");
        // In a session of its own the signals of a terminal, and the end of its process group, do not reach it.
        let mut alone = Command::new("setsid");
        alone.args(["sh", "-c", &script, "lease-watchdog", argument]);
        let mut plain = Command::new("sh");
        plain.args(["-c", &script, "lease-watchdog", argument]);

        let child = match spawn(&mut alone) {
            Err(error) if error.kind() == ErrorKind::NotFound => spawn(&mut plain),
            other => other,
        };
        Ok(Self {
            child: child.map_err(ServerError::io("start the watchdog of a server"))?,
        })
    }

    /// Ends the watchdog without its cleaning up, when there is nothing left to clean.
    pub(super) fn dismiss(mut self) {
        // If it can't be ended it looks once more for what it should clean, which does no harm.
        let _ = self.child.kill();
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // There is nobody to tell if it fails, and the watchdog goes on by itself.
        let _ = self.child.wait();
    }
}

fn spawn(command: &mut Command) -> std::io::Result<Child> {
    // The current folder may be removed by the test, and inherited output would keep a test runner waiting.
    command
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

//! [`Group`]: a program and whatever it starts, which end with us, however we end.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Waits for our end, which closes the pipe it reads from, and then ends the group.
const WATCHDOG: &str = "trap '' HUP INT TERM QUIT; while read -r _; do :; done; kill -s KILL -- \"-$1\"";

/// A running program in a process group of its own.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Child,
    watchdog: Child,
}

impl Group {
    /// Starts the program.
    ///
    /// # Errors
    ///
    /// It, or the shell that watches over it, could not be started.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut leader = command.process_group(0).spawn()?;
        let mut watchdog = Command::new("sh");
        watchdog.args(["-c", WATCHDOG, "watchdog", &leader.id().to_string()]);
        // In a group of its own, so that what ends us by the terminal does not end it first.
        watchdog
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match watchdog.spawn() {
            Ok(watchdog) => Ok(Self { leader, watchdog }),
            Err(error) => {
                leader.kill()?;
                leader.wait()?;
                Err(error)
            }
        }
    }

    /// Waits for the program's end. What it started and left running is not waited for, and not ended.
    ///
    /// # Errors
    ///
    /// The system does not tell.
    pub(crate) fn wait(mut self) -> io::Result<ExitStatus> {
        let status = self.leader.wait();
        // Before its number can be another's.
        self.watchdog.kill()?;
        self.watchdog.wait()?;
        status
    }
}

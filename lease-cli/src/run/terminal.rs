//! The terminal, which is lent to the job when it wants to read from it (ADR 0009).

use std::fs::File;
use std::io;

use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::process::{Pid, Signal, getpgrp, kill_current_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The terminal that controls us.
pub(super) struct Terminal {
    terminal: File,
    ours: Pid,
    /// How it was set when it was lent.
    lent: Option<Termios>,
}

impl Terminal {
    /// `None` for a job that runs without one, as under cron.
    pub(super) fn controlling() -> Option<Self> {
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self {
            terminal,
            ours: getpgrp(),
            lent: None,
        })
    }

    /// Makes `group` the one that reads from it, if that is ours to decide: not when we run in the background.
    pub(super) fn lend(&mut self, group: Pid) -> bool {
        if !matches!(tcgetpgrp(&self.terminal), Ok(holder) if holder == self.ours) {
            return false;
        }
        let Ok(modes) = tcgetattr(&self.terminal) else {
            return false;
        };
        let lent = tcsetpgrp(&self.terminal, group).is_ok();
        if lent {
            self.lent = Some(modes);
        }
        lent
    }

    /// Takes it back; `restore` sets it as it was, for a job that was killed had no chance to.
    pub(super) fn take_back(&mut self, restore: bool) -> bool {
        let Some(modes) = self.lent.take() else { return false };
        // Whoever is not in its foreground may change it only with this signal blocked (tcsetpgrp(3)).
        let mut blocked = SigSet::empty();
        blocked.add(Blocked::SIGTTOU);
        let _ = blocked.thread_block();
        let _ = tcsetpgrp(&self.terminal, self.ours);
        if restore {
            let _ = tcsetattr(&self.terminal, OptionalActions::Drain, &modes);
        }
        let _ = blocked.thread_unblock();
        true
    }
}

/// Stops us, and whoever shares our process group, until the shell lets the job go on.
///
/// Returns at once where no shell could: the kernel then ignores this signal, unlike SIGSTOP. It is not the one of Ctrl-Z,
/// since that one we catch.
pub(super) fn suspend() -> io::Result<()> {
    Ok(kill_current_process_group(Signal::TTIN)?)
}

//! Which of our children ended, and how.

use std::io;

use rustix::process::{Pid, WaitOptions, wait};
use serde_json::{Value, json};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Code(i32),
    Signal(i32),
}

impl Status {
    /// As shells have it.
    pub(super) fn exit_code(self) -> u8 {
        let code = match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        };
        u8::try_from(code & 0xff).unwrap_or(u8::MAX)
    }

    pub(super) fn json(self) -> Value {
        match self {
            Self::Code(code) => json!({ "code": code, "signal": null }),
            Self::Signal(signal) => json!({ "code": null, "signal": signal }),
        }
    }
}

/// What happened to a child.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Ended(Status),
    Stopped(i32),
}

/// From now on the orphans of our descendants are our children, so that somebody looks after them wherever we run: the
/// first process of a container often does not (PR_SET_CHILD_SUBREAPER(2const)).
pub(super) fn adopt_orphans() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// The next child that ended or stopped, if there is one. Who ended is then forgotten by the system.
pub(super) fn next_change() -> io::Result<Option<(Pid, Change)>> {
    loop {
        let Some((process, status)) = (match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            Ok(found) => found,
            Err(rustix::io::Errno::CHILD) => None,
            Err(error) => return Err(error.into()),
        }) else {
            return Ok(None);
        };
        let change = if let Some(signal) = status.stopping_signal() {
            Change::Stopped(signal)
        } else if let Some(signal) = status.terminating_signal() {
            Change::Ended(Status::Signal(signal))
        } else if let Some(code) = status.exit_status() {
            Change::Ended(Status::Code(code))
        } else {
            continue;
        };
        return Ok(Some((process, change)));
    }
}

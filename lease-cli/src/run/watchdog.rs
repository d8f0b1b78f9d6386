//! The watchdog: a process that kills the job when the lease is over, or when `lease` is gone.
//!
//! `lease` may be killed or stopped at any moment, and would then end nothing. So a process of its own knows until when the
//! job may run, by the machine's one clock, and hears through a pipe of each renewal. When the time is over, or the pipe is
//! closed, it kills the job's process group.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use lease_core::{BootClock, Clock, Moment};
use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::unix::pipe;

use crate::run::ourselves;

/// The first word for it.
pub(super) const WATCHDOG: &str = "_watchdog";

/// What `lease` says at the end. The job is gone.
const DONE: &str = "done";

/// The longest time between two looks at the clock: a sleep does not count the time in which the machine is suspended.
const SLICE: Duration = Duration::from_millis(500);

/// How long a watchdog may take to start. It takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// By how much the end must have moved to be told.
const STEP: Duration = Duration::from_millis(1);

/// The side of `lease`.
pub(super) struct Watchdog {
    pub(super) process: Pid,
    orders: pipe::Sender,
    /// What it was last told.
    until: Moment,
}

impl Watchdog {
    /// Starts one over `group`, and returns when it watches.
    pub(super) async fn over(group: Pid, until: Moment) -> io::Result<Self> {
        let started = tokio::time::timeout(PATIENCE, Self::start(group, until)).await;
        started.unwrap_or_else(|_| Err(io::Error::other("the watchdog does not answer")))
    }

    async fn start(group: Pid, until: Moment) -> io::Result<Self> {
        let mut command = Command::new(ourselves());
        command
            .arg0("lease")
            .arg(WATCHDOG)
            .arg(group.as_raw_nonzero().to_string());
        // Out of the group that a terminal sends signals to; and it needs nothing of ours.
        command.process_group(0).env_clear().current_dir("/");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("its pipes are not there"));
        };
        let mut watchdog = Self {
            process: Pid::from_child(&child),
            orders: pipe::Sender::from_owned_fd(orders.into())?,
            until: Moment::ZERO,
        };
        watchdog.orders.writable().await?;
        watchdog.until(until);
        let answers = pipe::Receiver::from_owned_fd(answers.into())?;
        answers.readable().await?;
        match answers.try_read(&mut [0; 8])? {
            0 => Err(io::Error::other("the watchdog ended at once")),
            _ => Ok(watchdog),
        }
    }

    /// Tells it how long the job may run now.
    pub(super) fn until(&mut self, until: Moment) {
        // What was measured twice differs a little; a renewal is more.
        if until > self.until + STEP && self.tell(&until.as_nanos().to_string()) {
            self.until = until;
        }
    }

    /// Tells it that the job is gone, so that nobody is to be killed.
    pub(super) fn dismiss(self) {
        self.tell(DONE);
    }

    /// Never waits: a watchdog that does not read is stopped, and keeps to what it knows.
    fn tell(&self, what: &str) -> bool {
        // So short a text is written as a whole or not at all (pipe(7)).
        self.orders.try_write(format!("{what}\n").as_bytes()).is_ok()
    }
}

/// The process itself.
pub(super) fn watch(group: i32) -> io::Result<()> {
    let Some(group) = Pid::from_raw(group) else {
        return Ok(());
    };
    // Only what can't be blocked ends it: it is not for the signals that are meant for `lease`.
    SigSet::all().thread_block()?;
    let mut orders = Orders::default();
    let mut killed = false;
    let mut watching = false;
    loop {
        let left = orders.until.map(|until| until.since(BootClock.now()));
        if left == Some(Duration::ZERO) && !killed {
            let _ = kill_process_group(group, Signal::KILL);
            killed = true;
        }
        let sleep = left.filter(|_| !killed).map_or(SLICE, |left| left.min(SLICE));
        match orders.wait(sleep)? {
            Heard::Nothing => {}
            Heard::Until if !watching => {
                watching = io::stdout()
                    .write_all(b"watching")
                    .and_then(|()| io::stdout().flush())
                    .is_ok();
            }
            Heard::Until => {}
            Heard::Done => return Ok(()),
            Heard::Silence => {
                let _ = kill_process_group(group, Signal::KILL);
                return Ok(());
            }
        }
    }
}

enum Heard {
    Nothing,
    Until,
    Done,
    /// The other side is gone.
    Silence,
}

/// What was read of the pipe.
#[derive(Default)]
struct Orders {
    text: String,
    until: Option<Moment>,
}

impl Orders {
    fn wait(&mut self, at_most: Duration) -> io::Result<Heard> {
        let stdin = io::stdin();
        let mut readable = [PollFd::new(&stdin, PollFlags::IN)];
        // Rounded up, so that it does not spin through the last fraction.
        let timeout = Timespec::try_from(at_most + Duration::from_micros(50)).ok();
        if poll(&mut readable, timeout.as_ref())? == 0 {
            return Ok(Heard::Nothing);
        }
        let mut bytes = [0; 512];
        // Not through the standard library's buffer, into which `poll` does not see.
        let count = rustix::io::read(&stdin, &mut bytes)?;
        if count == 0 {
            return Ok(Heard::Silence);
        }
        self.text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        let mut heard = Heard::Nothing;
        while let Some((line, rest)) = self.text.split_once('\n') {
            if line == DONE {
                return Ok(Heard::Done);
            }
            if let Ok(until) = line.parse() {
                self.until = Some(Moment::from_nanos(until));
                heard = Heard::Until;
            }
            self.text = rest.to_owned();
        }
        Ok(heard)
    }
}

//! The job under its lease: started, passed signals to, told to end, and gone at the end with all that it started.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use lease_core::{BootClock, Clock, Held, Moment};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::children::{self, Change, Status};
use super::signals::{Signals, Told};
use super::terminal::{self, Terminal};
use super::watchdog::Watchdog;
use super::{say, start};

/// The longest time until the watchdog hears of a renewal, and until a process that is nobody's child here is seen to be
/// gone.
const TICK: Duration = Duration::from_millis(100);

/// How long a job that was killed may take to be gone. Only one that hangs in the kernel, or is another user's, takes long.
const BURIAL: Duration = Duration::from_secs(2);

/// What is to be run, and for how long.
pub(super) struct Plan<'a> {
    pub(super) command: &'a [OsString],
    pub(super) time_limit: Option<Duration>,
    pub(super) kill_after: Duration,
    pub(super) renew_every: Duration,
}

/// Runs one job.
pub(super) struct Tender<'a> {
    plan: Plan<'a>,
    signals: &'a mut Signals,
    terminal: Option<Terminal>,
    leader: Option<Pid>,
    /// How the command ended.
    pub(super) status: Option<Status>,
    /// Whether it was told to end since its time was over.
    pub(super) overtime: bool,
}

impl<'a> Tender<'a> {
    pub(super) fn new(plan: Plan<'a>, signals: &'a mut Signals) -> Self {
        let terminal = Terminal::controlling();
        Self {
            plan,
            signals,
            terminal,
            leader: None,
            status: None,
            overtime: false,
        }
    }

    /// Runs the command, and returns when it and all of its process group are gone. Dropped, it kills them.
    pub(super) async fn run(&mut self, held: Held) -> io::Result<()> {
        let variables = [
            ("LEASE_NAME", held.name().to_string()),
            ("LEASE_HOLDER", held.holder().to_string()),
            ("LEASE_TOKEN", held.token().to_string()),
        ];
        let (process, gate) = start::spawn(self.plan.command, &variables)?;
        let group = Group(Pid::from_child(&process));
        self.leader = Some(group.0);
        let watchdog = Watchdog::over(group.0, drop_at(&held)).await?;
        gate.open()?;
        self.tend(&held, &group, watchdog).await
    }

    async fn tend(&mut self, held: &Held, group: &Group, mut watchdog: Watchdog) -> io::Result<()> {
        let clock = BootClock;
        let time_is_over = self.plan.time_limit.map(|limit| clock.now() + limit);
        let mut kill_at: Option<Moment> = None;
        loop {
            while let Some((process, change)) = children::next_change()? {
                match change {
                    Change::Ended(status) if process == group.0 => self.status = Some(status),
                    Change::Ended(_) if process == watchdog.process => {
                        watchdog = Watchdog::over(group.0, drop_at(held)).await?;
                    }
                    Change::Stopped(signal) if process == group.0 => self.stopped(group, signal),
                    Change::Ended(_) | Change::Stopped(_) => {}
                }
            }
            if self.status.is_some() && !group.is_alive() {
                watchdog.dismiss();
                return Ok(());
            }
            let now = clock.now();
            let overtime = time_is_over.is_some_and(|end| now >= end);
            // What the command leaves behind is not to run on once the lease is given up.
            if kill_at.is_none() && (held.stop().is_some() || overtime || self.status.is_some()) {
                self.overtime = overtime && held.stop().is_none() && self.status.is_none();
                group.ask_to_end();
                kill_at = Some(now + self.plan.kill_after);
            }
            if kill_at.is_some_and(|at| now >= at) {
                group.signal(Signal::KILL);
            }
            watchdog.until(drop_at(held));
            let tick = now + (self.plan.renew_every / 4).min(TICK);
            let wake = [kill_at.or(time_is_over)]
                .into_iter()
                .flatten()
                .filter(|at| *at > now)
                .fold(tick, Moment::min);
            tokio::select! {
                told = self.signals.next() => match told {
                    Told::Pass(signal) => group.signal(signal),
                    Told::Suspend => {
                        group.signal(Signal::TSTP);
                        self.suspend(group);
                    }
                    Told::Child => {}
                },
                _ = held.cancelled(), if kill_at.is_none() => {}
                () = clock.sleep_until(wake) => {}
            }
        }
    }

    /// After the end, also if `run` was dropped: waits for what was killed, and says whether it is gone.
    pub(super) async fn bury(&mut self) -> bool {
        let clock = BootClock;
        let until = clock.now() + BURIAL;
        let gone = loop {
            let Some(leader) = self.leader else { break true };
            while let Ok(Some((process, change))) = children::next_change() {
                if let Change::Ended(status) = change
                    && process == leader
                {
                    self.status = Some(status);
                }
            }
            let gone = self.status.is_some() && !Group(leader).is_alive();
            if gone || clock.now() >= until {
                break gone;
            }
            tokio::select! {
                _ = self.signals.next() => {}
                () = clock.sleep_until(clock.now() + TICK) => {}
            }
        };
        self.leader = None;
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back(matches!(self.status, Some(Status::Signal(_)) | None));
        }
        gone
    }

    /// The command was stopped: because it wants the terminal, or by Ctrl-Z.
    fn stopped(&mut self, group: &Group, signal: i32) {
        let is = |signals: &[Signal]| signals.iter().any(|one| one.as_raw() == signal);
        let wants_the_terminal = is(&[Signal::TTIN, Signal::TTOU]);
        if wants_the_terminal && self.terminal.as_mut().is_some_and(|terminal| terminal.lend(group.0)) {
            group.signal(Signal::CONT);
        } else if wants_the_terminal || is(&[Signal::TSTP]) {
            self.suspend(group);
        }
    }

    /// Stops with the job until both go on. Meanwhile nobody renews, and the watchdog keeps to what it knows.
    fn suspend(&mut self, group: &Group) {
        let was_lent = self.terminal.as_mut().is_some_and(|terminal| terminal.take_back(false));
        if let Err(error) = terminal::suspend() {
            say(&format!("can't stop with the command: {error}"));
        }
        if let Some(terminal) = self.terminal.as_mut().filter(|_| was_lent) {
            terminal.lend(group.0);
        }
        group.signal(Signal::CONT);
    }
}

/// The process group of a job, by its first process. Dropped, it is killed.
struct Group(Pid);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Err(Errno::PERM) = kill_process_group(self.0, signal) {
            say("the command runs as another user, who can't be sent signals: run lease as that user");
        }
    }

    fn ask_to_end(&self) {
        self.signal(Signal::TERM);
        // One that is stopped hears of it only then.
        self.signal(Signal::CONT);
    }

    fn is_alive(&self) -> bool {
        !matches!(test_kill_process_group(self.0), Err(Errno::SRCH))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

/// Until when the lease is ours. The clock is read first, so that it is never too late.
fn drop_at(held: &Held) -> Moment {
    BootClock.now() + held.remaining()
}

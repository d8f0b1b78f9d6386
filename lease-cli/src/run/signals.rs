//! The signals that `lease run` gets: which it passes on, and which tell it of its children and of the terminal.

use std::fs;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// Those that are passed on to the job, and that end the waiting for the lease.
const PASSED: [Signal; 7] = [
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
    Signal::ALARM,
    Signal::USR1,
    Signal::USR2,
];

/// What a signal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// To be passed on.
    Pass(Signal),
    /// Ctrl-Z.
    Suspend,
    /// A child ended or stopped.
    Child,
}

/// The signals, from now on.
pub(super) struct Signals(Vec<(Told, unix::Signal)>);

impl Signals {
    /// Takes them over, but for those that whoever started us wants ignored, as `nohup` and a shell's `&` do: the job then
    /// ignores them too.
    pub(super) fn take_over() -> io::Result<Self> {
        let ignored = ignored();
        let is_ignored = |signal: Signal| ignored >> (signal.as_raw() - 1) & 1 == 1;
        let passed = PASSED.into_iter().map(|signal| (signal, Told::Pass(signal)));
        let wanted = passed.chain([(Signal::TSTP, Told::Suspend), (Signal::CHILD, Told::Child)]);
        let wanted = wanted.filter(|&(signal, told)| told == Told::Child || !is_ignored(signal));
        let taken = wanted.map(|(signal, told)| Ok((told, unix::signal(SignalKind::from_raw(signal.as_raw()))?)));
        Ok(Self(taken.collect::<io::Result<_>>()?))
    }

    /// The next one. Dropping this loses none.
    pub(super) async fn next(&mut self) -> Told {
        poll_fn(|cx| {
            let ready = self
                .0
                .iter_mut()
                .find_map(|(told, signal)| signal.poll_recv(cx).is_ready().then_some(*told));
            ready.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// The mask of the ignored signals (proc_pid_status(5)); none where the system does not tell.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

//! `lease run`: a command under a lease.
//!
//! Three processes: this one, which holds the lease and does not work; the command, in a process group of its own, which
//! [waits](start) before it becomes the command; and a [watchdog].

mod children;
mod report;
mod signals;
mod start;
mod tend;
mod terminal;
mod watchdog;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lease_core::{AcquireError, BootClock, Clock, Guard, Job, Lease, Moment, Options, Outcome, Ran, Skip, Stop, Wait};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::answer::{Failure, code};
use crate::args::{Cli, RunArgs, Waiting};
use crate::database::Url;
use report::{End, Report, Tenure};
use signals::{Signals, Told};
use tend::{Plan, Tender};

/// Between two tries to reach a database while there is time to wait.
const AGAIN: Duration = Duration::from_millis(500);

/// How long a lease that may have been taken gets to be given back, when a signal ends the waiting for it.
const FAREWELL: Duration = Duration::from_millis(700);

/// The other processes of a run, which are this program too: known by their first word, before anything else is looked at, for
/// they are to start quickly. They are nobody's to call. `None` for whatever else is asked for.
pub(crate) fn part(mut arguments: impl Iterator<Item = OsString>) -> Option<Result<u8, Failure>> {
    let number = |word: Option<OsString>| word.and_then(|word| word.to_str()?.parse().ok());
    match arguments.next()?.to_str()? {
        start::JOB => {
            let gate = number(arguments.next()).unwrap_or(-1);
            let command: Vec<OsString> = arguments.collect();
            Some(start::job(gate, &command).map_or(Ok(code::USAGE), Err))
        }
        watchdog::WATCHDOG => {
            let watched = watchdog::watch(number(arguments.next()).unwrap_or(0));
            Some(Ok(if watched.is_ok() { code::DONE } else { code::USAGE }))
        }
        _ => None,
    }
}

/// Does it, and answers with the exit code.
///
/// # Errors
/// Nothing was tried: what was asked for makes no sense, or the report can't be written.
pub(crate) fn run(cli: &Cli, args: &RunArgs) -> Result<u8, Failure> {
    if cli.json {
        return Err(Failure::usage(
            "`run` has no --json, since the output is the command's: it has --report FILE",
        ));
    }
    let report_to = args.report.as_deref().map(create).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::config(format!("no runtime: {error}")))?;
    let report = runtime.block_on(Box::pin(job(cli, args)))?;
    let speaks = match &report.end {
        End::Ran(_) => false,
        // What happens at each tick on all pods but one is nothing to write mails about.
        End::NotAcquired(_) => !cli.quiet && (cli.verbose > 0 || io::stderr().is_terminal()),
        _ => true,
    };
    if let Some(cause) = report.cause().filter(|_| speaks) {
        say(&cause);
    }
    if let Some(ending) = report.ending().filter(|_| cli.verbose > 0) {
        say(&ending);
    }
    if let Some((mut file, path)) = report_to {
        let written = writeln!(file, "{}", report.json());
        written.map_err(|error| Failure::config(format!("the report {}: {error}", path.display())))?;
    }
    Ok(report.exit_code())
}

/// Before anything is done, since it would be too late afterwards.
fn create(path: &Path) -> Result<(File, PathBuf), Failure> {
    let file =
        File::create(path).map_err(|error| Failure::config(format!("the report {}: {error}", path.display())))?;
    Ok((file, path.to_owned()))
}

async fn job<'a>(cli: &Cli, args: &'a RunArgs) -> Result<Report<'a>, Failure> {
    let options = Options::from(args.ttl).at_least_for(args.at_least_for.unwrap_or_default());
    let url = Url::of(&cli.place)?;
    let began = BootClock.now();
    let mut report = Report {
        name: &args.name,
        end: End::NotAcquired(Skip::Busy(None)),
        waited: Duration::ZERO,
        tenure: None,
        busy_code: args.conflict_exit_code,
    };
    if let Err(failure) = find(args) {
        report.end = End::Failed(failure);
        return Ok(report);
    }
    let mut signals = Signals::take_over().map_err(|error| Failure::config(format!("signals: {error}")))?;
    children::adopt_orphans();
    let mut lease = None;
    let acquired = tokio::select! {
        biased;
        signal = asked_to_end(&mut signals) => Err(End::Interrupted(signal)),
        acquired = acquire(cli, args, &url, options, began, &mut lease) => acquired,
    };
    report.waited = BootClock.now().since(began);
    match acquired {
        Ok((guard, job)) => under(args, &mut report, guard, &job, &mut signals).await,
        Err(end) => {
            if let (End::Interrupted(_), Some(lease)) = (&end, lease) {
                // The statement may be under way. If there is no answer in time the row is freed at its expiry.
                let _ = tokio::time::timeout(FAREWELL, lease.shutdown(Duration::ZERO)).await;
            }
            report.end = end;
        }
    }
    Ok(report)
}

/// The command is looked for before the lease is, so that a misspelt one takes none.
fn find(args: &RunArgs) -> Result<(), Failure> {
    let program = &args.command[0];
    match which::which(program) {
        Ok(_) => Ok(()),
        Err(_) if Path::new(program).components().count() > 1 && Path::new(program).exists() => {
            Err(start::not_started(program, &Errno::ACCESS.into()))
        }
        Err(_) => Err(start::not_started(program, &Errno::NOENT.into())),
    }
}

async fn asked_to_end(signals: &mut Signals) -> Signal {
    loop {
        match signals.next().await {
            Told::Pass(signal) => return signal,
            Told::Suspend => {
                let _ = terminal::suspend();
            }
            Told::Child => {}
        }
    }
}

/// The lease, waited for as long as was asked for, a database that can't be reached included.
async fn acquire(
    cli: &Cli,
    args: &RunArgs,
    url: &Url,
    options: Options,
    began: Moment,
    lease: &mut Option<Lease>,
) -> Result<(Guard, Job), End> {
    let deadline = match args.wait {
        None => began,
        Some(Waiting::For(time)) => began + time,
        Some(Waiting::Forever) => Moment::FAR,
    };
    let speaks = !cli.quiet && (cli.verbose > 0 || io::stderr().is_terminal());
    let mut said = false;
    let database = loop {
        let failure = match url.open().await {
            Ok(database) => break database,
            Err(failure) => failure,
        };
        let now = BootClock.now();
        if failure.code != code::UNAVAILABLE || now >= deadline {
            return Err(End::Failed(failure));
        }
        if speaks && !said {
            say(&format!("waiting: {}", failure.text));
            said = true;
        }
        BootClock.sleep_until(deadline.min(now + AGAIN)).await;
    };
    let lease = lease.insert(database.lease().build());
    let job = lease
        .job(&args.name, options)
        .map_err(|error| End::Failed(Failure::usage(error.to_string())))?;
    // Once without waiting, to be able to say what is waited for.
    let mut asked = job.acquire(Wait::For(Duration::ZERO)).await;
    if let Err(AcquireError::TimedOut { last, .. }) = &asked
        && BootClock.now() < deadline
    {
        if speaks {
            say(&format!("waiting for {}: {last}", args.name));
        }
        let wait = match args.wait {
            Some(Waiting::Forever) => Wait::Forever,
            _ => Wait::For(deadline.since(BootClock.now())),
        };
        asked = job.acquire(wait).await;
    }
    match asked {
        Ok(guard) => Ok((guard, job)),
        Err(
            AcquireError::TimedOut {
                last: Skip::Store(error),
                ..
            }
            | AcquireError::Store(error),
        ) => Err(End::Failed(error.into())),
        Err(AcquireError::TimedOut { last, .. }) => Err(End::NotAcquired(last)),
        Err(error) => Err(End::Failed(Failure::config(error.to_string()))),
    }
}

/// Runs the command under the lease.
async fn under(args: &RunArgs, report: &mut Report<'_>, guard: Guard, job: &Job, signals: &mut Signals) {
    let plan = Plan {
        command: &args.command,
        time_limit: args.time_limit,
        kill_after: args.kill_after,
        renew_every: job.timing().renew_every(),
    };
    let mut tender = Tender::new(plan, signals);
    let (holder, token) = (guard.held().holder().to_string(), guard.held().token().get());
    let began = BootClock.now();
    let outcome = guard.run(|held| tender.run(held)).await;
    if !tender.bury().await {
        say("the command still runs, though its lease is over: it does not die of SIGKILL, or is another user's");
    }
    let mut release = None;
    let (stop, result) = match outcome {
        Outcome::Ran(Ran {
            value,
            stop,
            release: answer,
            ..
        }) => {
            if let Err(error) = &answer {
                say(&format!(
                    "{} was not released and is free at its expiry: {}",
                    args.name,
                    Failure::from(error.clone()).text
                ));
            }
            release = answer.ok();
            (stop, value)
        }
        Outcome::Dropped { stop, .. } => (Some(stop), Ok(())),
        _ => (Some(Stop::ShutDown), Ok(())),
    };
    report.end = match (result, stop, tender.status) {
        (Err(error), ..) => End::Failed(start::not_started(&args.command[0], &error)),
        (Ok(()), _, _) if tender.overtime => End::TimeLimit(args.time_limit.unwrap_or_default()),
        (Ok(()), Some(stop), _) => End::Lost(stop),
        (Ok(()), None, Some(status)) => End::Ran(status),
        (Ok(()), None, None) => End::Lost(Stop::Keeper),
    };
    report.tenure = Some(Tenure {
        holder,
        token,
        ran_for: BootClock.now().since(began),
        status: tender.status,
        release,
    });
}

/// Something that has to be said though the output is the command's.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "lease: {text}");
}

/// How this very program is started again, also after another one was put in its place.
fn ourselves() -> PathBuf {
    let ours = Path::new("/proc/self/exe");
    if ours.exists() {
        return ours.to_owned();
    }
    std::env::current_exe().unwrap_or_else(|_| "lease".into())
}

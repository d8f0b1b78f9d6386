//! What the command line can say.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use lease_core::{Label, LeaseName, Note};

use crate::answer::code;
use crate::demo;
use crate::watch;

/// Runs a command on exactly one machine at a time, with leases kept in a database; shows leases, and takes them away.
///
/// A lease is a row in the table `task_leases` that one holder has for a time. Whoever runs a job under it renews it until
/// the job ends; whoever dies loses it when its time is over. `lease demo` shows it at work, and needs nothing.
#[derive(Debug, Parser)]
#[command(name = "lease", version, arg_required_else_help = true, after_help = AFTER)]
pub(crate) struct Cli {
    /// Prints one JSON value instead of text for people. Times are RFC 3339 in UTC.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Prints nothing when all is well.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Says what happens, on standard error. Twice: each renewal too.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    #[command(flatten)]
    pub(crate) place: Where,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER: &str = "\
Exit codes:
  0   done
  1   there is no such lease, or nobody holds it
  64  the command line can't be understood
  69  the database can't be reached, has no answer in time, or takes no writes
  78  the URL, the rights or the table are not as they must be";

/// Which database. The first that is given counts, in this order.
#[derive(Debug, Args)]
#[command(next_help_heading = "Database")]
pub(crate) struct Where {
    /// `postgres://user@host/database`, `mysql://..` or `sqlite:/path/to/file`. Who lists processes sees it: a password is better off in
    /// LEASE_URL or in a file.
    #[arg(long, global = true, conflicts_with_all = ["url_file", "local"])]
    pub(crate) url: Option<String>,
    /// A file whose first line is the URL. Without any of these: LEASE_URL, then LEASE_URL_FILE.
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "local")]
    pub(crate) url_file: Option<PathBuf>,
    /// A file of this user's on this machine, in the folder for state: XDG_STATE_HOME, or ~/.local/state.
    #[arg(long, global = true)]
    pub(crate) local: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    /// All leases, by name.
    List,
    /// The table of `list` again and again, until Ctrl-C. Where no terminal reads it, a line for each change.
    Watch(watch::Options),
    /// Looks at all that leases hang on: server, way, clock, table, rights, durability. Says what to do about each.
    Doctor,
    /// Shows leases at work: three pods, of which one is killed, one paused for too long, and one told to end.
    ///
    /// It takes ten to fifteen seconds, on a file of its own. With --url, --url-file or --local, on that database instead.
    Demo,
    /// What a pod of `demo` is.
    #[command(name = "_pod", hide = true)]
    DemoPod(demo::PodOptions),
    /// One lease.
    Show {
        /// Its name.
        #[arg(value_parser = name)]
        name: LeaseName,
    },
    /// Takes a lease from its holder, who is told at its next renewal and stops. Nobody starts before its time is over.
    Evict {
        /// The lease.
        #[arg(value_parser = name)]
        name: LeaseName,
        #[command(flatten)]
        why: Why,
        /// Frees it at once. The old holder may still run: only the fencing token then keeps its writes out.
        #[arg(long)]
        now: bool,
    },
    /// Keeps everybody off a lease for a while. Its holder is told at its next renewal and stops.
    Pause {
        /// The lease, which need not be there yet.
        #[arg(value_parser = name)]
        name: LeaseName,
        /// How long, such as `30m` or `2h 30m`. Never shorter than what the holder has left.
        #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
        time: Duration,
        #[command(flatten)]
        why: Why,
    },
    /// Ends a pause, whoever made it. The lease is free at once, or when the displaced holder's time is over.
    Resume {
        /// The lease.
        #[arg(value_parser = name)]
        name: LeaseName,
    },
    /// Deletes the rows of leases that were free for a while. Their fencing tokens start from the database's clock again.
    Purge {
        /// For how long at the least, such as `30d`. What was held within a minute stays in any case.
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        older_than: Duration,
    },
    /// Makes the table, or completes one that the Go package made. An SQLite file gets it at its first use.
    Migrate {
        /// Only prints the statement that makes it.
        #[arg(long)]
        print: bool,
    },
    /// Prints what completes this command in a shell, to be sourced by it.
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Writes the manual pages.
    Man {
        /// Into which folder.
        folder: PathBuf,
    },
}

/// Runs a command if and only if the lease can be taken, and keeps the lease while it runs.
///
/// The command is run without a shell. It, and all that it started, is gone before the lease is given up; if the lease is
/// lost it is told to end by SIGTERM, and killed when the lease's time is over, also if `lease` itself was killed or
/// stopped. It finds LEASE_NAME, LEASE_HOLDER and LEASE_TOKEN in its environment: the token grows with each grant, so what it
/// writes to can refuse whoever comes late.
#[derive(Debug, Args)]
#[command(after_help = AFTER_RUN)]
pub(crate) struct RunArgs {
    /// The lease. Whoever is to exclude each other says the same name, and the same database.
    #[arg(value_parser = name)]
    pub(crate) name: LeaseName,
    /// How long the lease outlives a machine that dies. It is renewed while the command runs, which may take longer.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(crate) ttl: Duration,
    /// Waits so long for the lease, or `forever`; without it, not at all.
    #[arg(short, long, value_name = "DURATION", value_parser = waiting)]
    pub(crate) wait: Option<Waiting>,
    /// Keeps the lease for so long at the least, though the command ends sooner: so that machines whose clocks differ by less
    /// don't each run a short one. For a job of every five minutes, say four.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) at_least_for: Option<Duration>,
    /// Ends the command after so long.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) time_limit: Option<Duration>,
    /// The exit code if the lease was not acquired.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = code::BUSY)]
    pub(crate) conflict_exit_code: u8,
    /// How long a command that was told to end may take, if the lease lasts so long, before it is killed.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) kill_after: Duration,
    /// Writes what became of it into a file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// How long to wait for a lease.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Waiting {
    For(Duration),
    Forever,
}

const AFTER_RUN: &str = "\
Example, each night on several machines:
  LEASE_URL_FILE=/etc/lease.url lease run nightly-backup --at-least-for 10m -- /usr/local/bin/backup --all

Exit codes, beside the command's own, which is 128 + N if it died of signal N:
  64   the command line can't be understood
  69   the database can't be reached, has no answer in time, or takes no writes
  74   the lease was lost while the command ran
  75   the lease was not acquired: another has it (see -E)
  78   the URL, the rights or the table are not as they must be
  124  the time limit was reached
  126  the command can't be executed
  127  the command was not found";

fn waiting(text: &str) -> Result<Waiting, String> {
    if text == "forever" {
        return Ok(Waiting::Forever);
    }
    Ok(Waiting::For(duration(text)?))
}

/// Who does it, and what for. Both stand in the row.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// For the people who ask why it does not run.
    #[arg(long, value_parser = note)]
    pub(crate) reason: Note,
    /// Who does it. `user@host` if it is left out.
    #[arg(long, value_parser = label)]
    pub(crate) by: Option<Label>,
}

pub(crate) fn name(text: &str) -> Result<LeaseName, String> {
    LeaseName::new(text).map_err(|error| error.to_string())
}

fn note(text: &str) -> Result<Note, String> {
    Note::new(text).map_err(|error| error.to_string())
}

pub(crate) fn label(text: &str) -> Result<Label, String> {
    Label::new(text).map_err(|error| error.to_string())
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}: write it like 90s, 2h or 1h 30m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each `lease run` of the docs, also where it is a list.
    #[test]
    fn the_recipes_of_the_docs_can_be_typed_and_keep_the_lease_for_a_while() {
        let docs = include_str!("../../docs/cli.md");
        let mut recipes = 0;
        for line in docs.lines() {
            let line = line
                .replace("[lease, run", "lease run")
                .replace("\", \"", " ")
                .replace([',', '"', ']'], "");
            let Some((_, arguments)) = line.split_once("lease run nightly-backup") else {
                continue;
            };
            let words = ["lease", "run", "nightly-backup"]
                .into_iter()
                .chain(arguments.split_whitespace());
            let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
            let Command::Run(run) = cli.command else {
                panic!("{line}")
            };
            assert!(run.at_least_for > Some(Duration::from_secs(60)), "{line}");
            recipes += 1;
        }
        assert_eq!(recipes, 4);
    }
}

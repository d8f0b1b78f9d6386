//! What the command line can say.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use lease_core::{Label, LeaseName, Note};

#[cfg(unix)]
use crate::demo;
use crate::watch;

/// Leases kept in a database: who has which, and taking one away.
///
/// A lease is a row in the table `task_leases` that one holder has for a time. Whoever runs a job under it renews it until
/// the job ends; whoever dies loses it when its time is over.
#[derive(Debug, Parser)]
#[command(name = "lease", version, arg_required_else_help = true, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Prints one JSON value instead of text for people. Times are RFC 3339 in UTC.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Prints nothing when all is well.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
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
    /// `postgres://user@host/database` or `sqlite:/path/to/file`. Who lists processes sees it: a password is better off in
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
    /// All leases, by name.
    List,
    /// The table of `list` again and again, until Ctrl-C. Where no terminal reads it, a line for each change.
    Watch(watch::Options),
    /// Looks at all that leases hang on: server, way, clock, table, rights, durability. Says what to do about each.
    Doctor,
    /// Shows leases at work, in a quarter of a minute and on a file of its own: three pods, of which one is killed, one paused
    /// and one told to end. With --url or --url-file, on that database instead.
    #[cfg(unix)]
    Demo,
    #[cfg(unix)]
    #[command(hide = true)]
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

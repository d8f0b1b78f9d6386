//! `measure`: figures from a real server, each against its aim.

mod database;
mod handoff;
mod herd;
mod many;
mod median;
mod pairs;
mod run;
mod statements;

use std::os::unix::process::CommandExt;

use crate::report::Report;
use crate::run::cargo;

pub(crate) use handoff::{HolderArgs as HandoffHolderArgs, run_holder as run_handoff_holder};
pub(crate) use herd::{PodArgs as HerdPodArgs, run_pod as run_herd_pod};
pub(crate) use pairs::{pgbench_pairs, pgbench_script, statement};

/// What can be measured.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum What {
    /// How many statements, how much write-ahead log and which locks each operation costs.
    Statements(statements::Args),
    /// Many contenders in several processes on one row: one winner each, whatever the isolation level.
    Herd(herd::Args),
    /// Acquire and release, durable, against `pgbench` with the same statements.
    Pairs(pairs::Args),
    /// From one pod's release, or death, to the next one's work; and what it costs to tell who waits.
    Handoff(handoff::Args),
    /// What it costs to hold ten thousand leases in one process.
    Many(many::Args),
    /// What `lease run` adds to the time of a command that does nothing.
    Run(run::Args),
}

/// The verb.
pub(crate) fn run(what: &What) -> anyhow::Result<Report> {
    match what {
        What::Statements(args) => statements::run(args),
        What::Herd(args) => herd::run(args),
        What::Pairs(args) => pairs::run(args),
        What::Handoff(args) => handoff::run(args),
        What::Many(args) => many::run(args),
        What::Run(args) => run::run(args),
    }
}

/// Becomes the same command, compiled for speed, unless this is it: what is measured is ours, and not the compiler's.
fn optimized() -> anyhow::Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let mut command = cargo(["run", "--quiet", "--release", "--package", "xtask", "--"]);
    Err(command.args(std::env::args_os().skip(1)).exec().into())
}

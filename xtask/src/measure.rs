//! `measure`: figures from a real server, each against its aim.

mod database;
mod herd;
mod statements;

use crate::report::Report;

pub(crate) use herd::{PodArgs as HerdPodArgs, run_pod as run_herd_pod};

/// What can be measured.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum What {
    /// How many statements, how much write-ahead log and which locks each operation costs.
    Statements(statements::Args),
    /// Many contenders in several processes on one row: one winner each, whatever the isolation level.
    Herd(herd::Args),
}

/// The verb.
pub(crate) fn run(what: &What) -> anyhow::Result<Report> {
    match what {
        What::Statements(args) => statements::run(args),
        What::Herd(args) => herd::run(args),
    }
}

//! `model`: the real tenure machine and the real laws under a model checker, in release mode.

use crate::report::Report;
use crate::sim;

/// What `model` can be told: it is passed on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only the small runs, which the tests repeat.
    #[arg(long)]
    small: bool,
    /// Only the run of this name.
    #[arg(long)]
    run: Option<String>,
    /// Breaks one rule after the other, and fails if one is not noticed.
    #[arg(long)]
    mutants: bool,
    /// How many threads.
    #[arg(long)]
    threads: Option<usize>,
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let flags = [("--small", args.small), ("--mutants", args.mutants)];
    let flags = flags
        .into_iter()
        .filter(|(_, set)| *set)
        .map(|(flag, _)| flag.to_owned());
    let named = args.run.iter().map(|name| ("--run", name.clone()));
    let counted = args.threads.iter().map(|threads| ("--threads", threads.to_string()));
    let valued = named.chain(counted).flat_map(|(flag, value)| [flag.to_owned(), value]);
    sim::prove("model", &flags.chain(valued).collect::<Vec<_>>())
}

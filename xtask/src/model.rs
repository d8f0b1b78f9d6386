//! `model`: the real tenure machine and the real laws under a model checker, in release mode.

use crate::report::Report;
use crate::sim;

/// What `model` can be told: it is passed on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Arguments of the model checker.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    sim::prove("model", &args.args)
}

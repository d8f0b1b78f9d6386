//! `cargo xtask model` and `cargo xtask sim`: this program, in release mode.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lease_proof::sim;

/// The proof of lease-core.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Proof {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plays worlds of pods under faults, and fails if an invariant is violated.
    Sim(sim::Args),
    /// Tries every order of events up to a bound.
    Model,
}

fn main() -> anyhow::Result<ExitCode> {
    match Proof::parse().command {
        Command::Sim(args) => sim::run(&args),
        // Here goes `lease_proof::model::run(&args)`; until then the command fails.
        Command::Model => anyhow::bail!("the model checker is not wired to this command yet"),
    }
}

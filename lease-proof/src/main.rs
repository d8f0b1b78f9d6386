//! `cargo xtask model` and `cargo xtask sim`: this program, in release mode.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lease_proof::{model, sim};

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
    Model(model::Args),
}

fn main() -> anyhow::Result<ExitCode> {
    match Proof::parse().command {
        Command::Sim(args) => sim::run(&args),
        Command::Model(args) => model::run(&args),
    }
}

//! `cargo xtask chaos`: worlds of pods and servers that are broken on purpose, and the checker of what the pods did.
//!
//! A world is one process tree on a network of its own, and nothing of it outlives its first process. `world` needs
//! root and runs in namespaces of its own, which `cargo xtask chaos` makes; `pod` is what it starts.

mod admin;
mod check;
mod engine;
mod fault;
mod journal;
mod line;
mod nemesis;
mod net;
mod pod;
mod processes;
mod relay;
mod report;
mod sampler;
mod server;
mod world;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Pods and servers under faults, and the checker of what the pods did.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Chaos {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plays one world, and prints what was seen of it as one JSON object.
    World(world::Args),
    /// One pod of a world: works under leases until it is killed.
    Pod(pod::Args),
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    match Chaos::parse().command {
        Command::World(args) => world::run(args).await,
        Command::Pod(args) => pod::run(args).await.map(|()| ExitCode::SUCCESS),
    }
}

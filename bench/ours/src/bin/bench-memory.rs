//! Acquire and release without a database, for callgrind to count: `valgrind --tool=callgrind bench-memory lease --pairs 1000`.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;
use lease_core::{Acquire, Claim, Clock, Label, Lease, LeaseName, MemoryRepo, Repo, TokioClock};

/// What it is told.
#[derive(Debug, Parser)]
struct Args {
    /// `lease`, the way of an application, or `repo`, the rows alone.
    level: String,
    /// How many.
    #[arg(long)]
    pairs: u32,
}

const TTL: Duration = Duration::from_secs(60);

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // valgrind has no vDSO, from which the machine's own clock is read.
        let clock = TokioClock::new();
        let repo = MemoryRepo::with_time(move || clock.now());
        match args.level.as_str() {
            "lease" => {
                let lease = Lease::builder(repo).clock(clock).build();
                for _ in 0..args.pairs {
                    let guard = lease.try_acquire("pair", TTL).await?.context("nobody else has it")?;
                    guard.release().await?;
                }
            }
            "repo" => {
                let label = Label::new("bench")?;
                for _ in 0..args.pairs {
                    let claim = Claim::new(LeaseName::new("pair")?, label.new_holder(), TTL);
                    if !matches!(repo.acquire(&claim).await?, Acquire::Granted(_)) {
                        bail!("nobody else has it");
                    }
                    repo.release(&claim).await?;
                }
            }
            other => bail!("{other} is no way of ours"),
        }
        Ok(())
    })
}

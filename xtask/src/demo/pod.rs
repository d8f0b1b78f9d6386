//! One pod of the demo: it waits for the lease, works under it until it is told to end, and says so.

use std::io::Write;
use std::time::Duration;

use lease_core::{Label, Lease, Wait};
use lease_postgres::PostgresRepo;
use tokio::signal::unix::{SignalKind, signal};

use super::{Line, What};

/// The variable with the database's URL.
pub(super) const URL: &str = "LEASE_DEMO_URL";

/// What a pod is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Its name.
    #[arg(long)]
    label: String,
    /// How long its lease lasts, in milliseconds.
    #[arg(long)]
    ttl_ms: u64,
}

/// Runs the pod until SIGTERM, or until the demo is gone.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?
        .block_on(pod(args))
}

async fn pod(args: &Args) -> anyhow::Result<()> {
    // The demo holds the other end of our input: when it dies, so do we.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let mut end = signal(SignalKind::terminate())?;
    let repo = PostgresRepo::connect(&std::env::var(URL)?).await?;
    let lease = Lease::with_holder(repo, Label::new(&args.label)?);
    say(&Line::now(&args.label, What::Waits, None))?;
    let guard = tokio::select! {
        guard = lease.acquire("demo", Duration::from_millis(args.ttl_ms), Wait::Forever) => guard?,
        _ = end.recv() => return Ok(()),
    };
    let outcome = guard.run(async |held| {
        let token = Some(held.token().get());
        say(&Line::now(&args.label, What::Works, token))?;
        tokio::select! {
            _ = end.recv() => {}
            stop = held.cancelled() => tracing::warn!(%stop, "told to stop"),
        }
        say(&Line::now(&args.label, What::Ended, token))
    });
    outcome.await.into_value().unwrap_or(Ok(()))
}

fn say(line: &Line) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(std::io::stdout().flush()?)
}

//! A leader: of all processes that run this on one file, one leads, and if it dies another does.
//!
//! `leader FILE`; several on one machine. With `PostgresRepo::connect(url)` in place of `SqliteRepo` on several.
#![allow(clippy::print_stdout, reason = "to be looked at")]

use std::env;
use std::error::Error;
use std::io;
use std::time::Duration;

use lease_core::{Held, Lease};
use lease_sqlite::SqliteRepo;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long after the death of a leader another one leads, at the most.
const TTL: Duration = Duration::from_secs(3);
/// How long a leader may take to end.
const GRACE: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args_os().nth(1).ok_or("usage: leader FILE")?;
    let repo = SqliteRepo::open(file).await?;
    repo.migrate().await?;
    let lease = Lease::new(repo);
    let campaign = lease.job("leader", TTL)?.campaign();

    let shutdown = CancellationToken::new();
    let work = tokio::spawn(campaign.run(shutdown.clone(), lead));
    println!("{} stands", lease.holder());
    signal(SignalKind::terminate())?.recv().await;
    shutdown.cancel();
    lease.shutdown(GRACE).await;
    work.await?;
    println!("ended");
    Ok(())
}

/// Leads until told otherwise. Returning is resigning; an error is logged, and then the same.
async fn lead(held: Held) -> io::Result<()> {
    println!("leading with token {}", held.token());
    let mut beat = tokio::time::interval(Duration::from_millis(100));
    loop {
        tokio::select! {
            stop = held.cancelled() => {
                println!("told to stop: {stop}");
                return Ok(());
            }
            _ = beat.tick() => {} // What a leader does.
        }
    }
}

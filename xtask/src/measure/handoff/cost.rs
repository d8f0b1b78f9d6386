//! What it costs those who release that who waits is told.
//!
//! Runs that tell and runs that don't take turns, since a machine is never equally busy for long. What counts is the median of
//! their ratios, with the interval that it lies in with a confidence of 95 %.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::ensure;
use futures_util::future::try_join_all;
use lease_core::{BootClock, Claim, Clock, Holder, LeaseName, Release, Repo};
use lease_postgres::PostgresRepo;
use serde_json::json;
use tokio::time::timeout;

use crate::measure::database::Onlooker;
use crate::measure::median::{hundredths, interval, median};
use crate::report::{Report, note};

const CONNECTIONS: usize = 32;
/// Above that loss, telling is not the default.
const DEFAULT_BELOW_PERCENT: f64 = 5.0;

pub(super) async fn measure(url: &str, pairs: u32, releases: u32, report: &mut Report) -> anyhow::Result<()> {
    let (mut silent, mut telling, mut losses) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        // Who comes first changes, for the second may find the disk busy with what the first left.
        let first = pair % 2 == 0;
        let one = rate(url, first, releases).await?;
        let other = rate(url, !first, releases).await?;
        let (with, without) = if first { (one, other) } else { (other, one) };
        note(format_args!("releases: silent {without:.0}/s, telling {with:.0}/s"));
        silent.push(without);
        telling.push(with);
        losses.push((1.0 - with / without) * 100.0);
    }
    let loss = median(&mut losses);
    let (least, most) = interval(&losses);
    report.fact("pairs_of_runs", pairs);
    report.fact("connections", CONNECTIONS);
    report.fact("releases_per_second_silent", json!(median(&mut silent).round()));
    report.fact("releases_per_second_telling", json!(median(&mut telling).round()));
    report.fact("loss_percent", hundredths(loss));
    report.fact("loss_percent_95", json!([hundredths(least), hundredths(most)]));
    report.fact("may_be_the_default", most < DEFAULT_BELOW_PERCENT);
    Ok(())
}

/// Releases per second over all connections. With `notify`, one pod listens.
async fn rate(url: &str, notify: bool, releases: u32) -> anyhow::Result<f64> {
    let onlooker = Onlooker::connect(url).await?;
    // Each run begins with the same table and the same log.
    let held = format!(
        "TRUNCATE task_leases; INSERT INTO task_leases (name, holder, token, acquired_at, expires_at) \
         SELECT 'held-' || n, 'pod/' || n, 1, clock_timestamp(), clock_timestamp() + interval '1 hour' \
         FROM generate_series(0, {releases} - 1) n"
    );
    onlooker.batch_execute(&held).await?;
    onlooker.batch_execute("ANALYZE task_leases").await?;
    onlooker.batch_execute("CHECKPOINT").await?;
    let repo = Arc::new(
        PostgresRepo::connect(url)
            .await?
            .connections(CONNECTIONS)?
            .notify(notify),
    );
    let hears = PostgresRepo::connect(url).await?.notify(notify);
    let nobodys = LeaseName::from_static("nobody's");
    if notify {
        // The first hint says that it listens, and the connection stays open for a while.
        timeout(Duration::from_secs(10), hears.freed(&nobodys)).await?;
    }
    let listening = tokio::spawn(async move { hears.freed(&nobodys).await });
    // Every connection is open, and has its statement, before the clock runs.
    let not_there = claim(u32::MAX);
    for _ in 0..3 {
        try_join_all((0..CONNECTIONS).map(|_| repo.release(&not_there))).await?;
    }
    let next = Arc::new(AtomicU32::new(0));
    let began = BootClock.now();
    let releasing = (0..CONNECTIONS).map(|_| {
        let (repo, next) = (repo.clone(), next.clone());
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= releases {
                    return anyhow::Ok(());
                }
                ensure!(repo.release(&claim(number)).await? == Release::Released, "it is held");
            }
        })
    });
    let ended: anyhow::Result<Vec<()>> = try_join_all(releasing).await?.into_iter().collect();
    ended?;
    let took = BootClock.now().since(began);
    ensure!(!listening.is_finished(), "nobody releases what it waits for");
    listening.abort();
    Ok(f64::from(releases) / took.as_secs_f64())
}

/// Of the row with that number.
fn claim(number: u32) -> Claim {
    let name = LeaseName::new(format!("held-{number}")).expect("a legal name");
    let holder = Holder::new(format!("pod/{number}")).expect("a legal holder");
    Claim::new(name, holder, Duration::from_secs(60))
}

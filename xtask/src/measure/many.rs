//! `measure many`: what it costs to hold ten thousand leases in one process.

use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;
use lease_core::{BootClock, Clock, Guard, Lease};
use lease_postgres::PostgresRepo;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::json;

use super::database::{Measured, Onlooker};
use super::median::hundredths;
use super::optimized;
use crate::report::{Report, note};

const TTL: Duration = Duration::from_secs(30);
/// Between two renewals of a lease.
const ROUND: Duration = Duration::from_secs(10);

/// Statements a round, share of one core, and bytes a lease, at ten thousand.
const AIMS: (f64, f64, f64) = (10.0, 0.05, 2_048.0);

/// What the measurement can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many leases, one size after the other; the last one has the aims.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 10_000])]
    leases: Vec<usize>,
    /// How many rounds of ten seconds are looked at.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    optimized()?;
    let measured = Measured::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let mut report = Report::new(&["leases", "statements_a_round", "of_one_core", "bytes_a_lease"]);
    report.fact("rounds", args.rounds);
    report.fact("ttl_seconds", TTL.as_secs());
    let mut last = None;
    for leases in &args.leases {
        let cost = runtime.block_on(Box::pin(hold(measured.database.url(), *leases, args.rounds)))?;
        note(format_args!("{leases} leases: {cost:?}"));
        report.row([
            json!(leases),
            hundredths(cost.statements),
            json!((cost.cpu * 10_000.0).round() / 10_000.0),
            json!(cost.bytes.round()),
        ]);
        last = Some(cost);
    }
    if let Some(cost) = last {
        let (statements, cpu, bytes) = AIMS;
        for (what, is, aim) in [
            ("statements a round", cost.statements, statements),
            ("of one core", cost.cpu, cpu),
            ("bytes a lease", cost.bytes, bytes),
        ] {
            if is > aim {
                report.miss(format!("{is:.3} {what}, not {aim}"));
            }
        }
    }
    Ok(report)
}

/// What holding so many leases costs.
#[derive(Debug)]
struct Cost {
    statements: f64,
    cpu: f64,
    bytes: f64,
}

async fn hold(url: &str, count: usize, rounds: u32) -> anyhow::Result<Cost> {
    let clock = BootClock;
    let sleep = |time| clock.sleep_until(clock.now() + time);
    let onlooker = Onlooker::connect(url).await?;
    onlooker
        .batch_execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        .await?;
    let repo = PostgresRepo::connect(url).await?;
    repo.migrate().await?;
    let lease = Lease::new(repo);
    drop(lease.try_acquire("first", TTL).await?);
    sleep(Duration::from_secs(1)).await;
    let before = resident()?;
    let mut guards: Vec<Guard> = Vec::with_capacity(count);
    for names in (0..count).collect::<Vec<_>>().chunks(32) {
        let acquiring = names.iter().map(|name| lease.try_acquire(format!("held-{name}"), TTL));
        for guard in try_join_all(acquiring).await? {
            guards.push(guard.context("nobody else has it")?);
        }
    }
    // What was acquired at different times comes together within two rounds.
    sleep(ROUND * 2).await;
    between_renewals(&guards).await?;
    let statements = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid \
                      WHERE d.datname = current_database() AND query LIKE '%task_leases%' AND query NOT LIKE '%pg_stat%'";
    let (statements_before, cpu_before, began) = (onlooker.number(statements).await?, cpu_time()?, clock.now());
    sleep(ROUND * rounds).await;
    let (statements_after, cpu_after) = (onlooker.number(statements).await?, cpu_time()?);
    let took = clock.now().since(began).as_secs_f64();
    let after = resident()?;
    ensure!(guards.iter().all(|guard| guard.held().is_live()), "all are held");
    lease.shutdown(Duration::ZERO).await;
    drop(guards);
    onlooker.batch_execute("TRUNCATE task_leases").await?;
    #[expect(clippy::cast_precision_loss, reason = "they are small")]
    Ok(Cost {
        statements: (statements_after - statements_before) as f64 * ROUND.as_secs_f64() / took,
        cpu: (cpu_after - cpu_before) / took,
        bytes: after.saturating_sub(before) as f64 / count as f64,
    })
}

/// Waits until the last renewal is half a round past, so that none is under way when the counters are read.
async fn between_renewals(guards: &[Guard]) -> anyhow::Result<()> {
    let clock = BootClock;
    let ends = || {
        let longest = guards.iter().map(|guard| guard.held().remaining()).max();
        clock.now() + longest.unwrap_or_default()
    };
    let began = clock.now();
    let (mut renewed, mut last) = (began, ends());
    while clock.now().since(renewed) < ROUND / 2 {
        let now = clock.now();
        ensure!(
            now.since(began) < ROUND * 4,
            "what is due together is not renewed together"
        );
        clock.sleep_until(now + ROUND / 50).await;
        // What was not renewed ends when it did, but for the time between two looks at the clock.
        if ends().since(last) > ROUND / 50 {
            (renewed, last) = (clock.now(), ends());
        }
    }
    Ok(())
}

/// What this process has used of the CPUs, in seconds.
fn cpu_time() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    #[expect(clippy::cast_precision_loss, reason = "it is small")]
    Ok(micros as f64 / 1e6)
}

/// What this process has in memory, in bytes (proc_pid_statm(5)).
fn resident() -> anyhow::Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split(' ').nth(1).context("no resident pages")?.parse()?;
    Ok(pages * 4_096)
}

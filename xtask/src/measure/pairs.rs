//! `measure pairs`: acquire and release through the public API, against `pgbench` with the same statements on the same
//! server.
//!
//! The two run in turn, since a machine is never equally busy for long, and what counts is the median of their ratios.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;
use lease_core::{BootClock, Clock, Lease};
use lease_postgres::PostgresRepo;
use lease_testkit::servers::Dialect;
use serde_json::json;

use super::database::Measured;
use super::median::{hundredths, median};
use super::optimized;
use crate::machine::Machine;
use crate::report::{Report, note};

const TTL: Duration = Duration::from_secs(60);

mod mysql;

/// Connections, and the least ratio that is good enough. A single connection pays for the way to the keeper's thread and back
/// with time in which the server has nothing to do.
const AIMS: [(usize, f64); 3] = [(1, 0.75), (8, 0.9), (32, 0.9)];

/// Our statements, which a test of lease-postgres pins.
const STATEMENTS: &str = include_str!("../../../lease-postgres/tests/statements.sql");

/// What the measurement can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many runs of each, in turn.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// How many seconds each run takes.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Which server: on MySQL and MariaDB ours runs against the same statements in a bare loop of the driver.
    #[arg(long, value_enum, default_value_t = Engine::Postgres)]
    engine: Engine,
}

/// A kind of server.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Engine {
    Postgres,
    Mysql,
    Mariadb,
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    match args.engine {
        Engine::Postgres => {}
        Engine::Mysql => return mysql::run(args, Dialect::Mysql),
        Engine::Mariadb => return mysql::run(args, Dialect::MariaDb),
    }
    optimized()?;
    let pgbench = Machine::look()
        .postgres
        .context("there are no programs of PostgreSQL here: `cargo xtask test --install`")?
        .join("pgbench");
    let measured = Measured::start()?;
    let url = measured.database.url();
    // With the keeper's thread that makes two, as pgbench has.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async { PostgresRepo::connect(url).await?.migrate().await })?;
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("pairs.sql");
    std::fs::write(&script, pgbench_script()?)?;
    let seconds = Duration::from_secs(args.seconds);

    let columns = &["connections", "pgbench", "ours", "ratio", "least", "most", "aim"];
    let mut report = Report::new(columns);
    report.fact("runs", args.runs);
    report.fact("seconds_each", args.seconds);
    if args.runs < 10 {
        report.miss("fewer than 10 runs of each");
    }
    for (connections, aim) in AIMS {
        let mut series = Series::default();
        for number in 0..args.runs {
            // Who comes first changes, for the second may find the disk busy with what the first left.
            let (theirs, ours) = if number % 2 == 0 {
                let theirs = pgbench_pairs(&pgbench, &script, url, connections, args.seconds)?;
                (theirs, runtime.block_on(our_pairs(url, connections, seconds))?)
            } else {
                let ours = runtime.block_on(our_pairs(url, connections, seconds))?;
                (pgbench_pairs(&pgbench, &script, url, connections, args.seconds)?, ours)
            };
            note(format_args!(
                "{connections} connections: pgbench {theirs:.0}/s, ours {ours:.0}/s"
            ));
            series.add(theirs, ours);
        }
        let ratio = series.line(&mut report, connections, aim);
        if ratio < aim {
            report.miss(format!("{connections} connections: {ratio:.2} of pgbench, not {aim}"));
        }
    }
    Ok(report)
}

/// Pairs per second of both, run for run.
#[derive(Default)]
struct Series {
    theirs: Vec<f64>,
    ours: Vec<f64>,
    ratios: Vec<f64>,
}

impl Series {
    fn add(&mut self, theirs: f64, ours: f64) {
        self.theirs.push(theirs);
        self.ours.push(ours);
        self.ratios.push(ours / theirs);
    }

    /// Adds its line; answers the median of the ratios.
    fn line(&mut self, report: &mut Report, connections: usize, aim: f64) -> f64 {
        let ratio = median(&mut self.ratios);
        report.row([
            json!(connections),
            json!(median(&mut self.theirs).round()),
            json!(median(&mut self.ours).round()),
            hundredths(ratio),
            hundredths(self.ratios[0]),
            hundredths(self.ratios[self.ratios.len() - 1]),
            json!(aim),
        ]);
        ratio
    }
}

/// As an application does it: one `Lease` for all.
async fn our_pairs(url: &str, connections: usize, time: Duration) -> anyhow::Result<f64> {
    let lease = Lease::new(PostgresRepo::connect(url).await?.connections(connections)?);
    // Every connection is open, and has its statements, before the clock runs.
    let clients = 0..connections;
    try_join_all(clients.clone().map(|client| tokio::spawn(pair(lease.clone(), client)))).await?;
    let start = BootClock.now();
    let end = start + time;
    let counts = clients.map(|client| {
        let lease = lease.clone();
        tokio::spawn(async move {
            let mut count = 0_u32;
            while BootClock.now() < end {
                pair(lease.clone(), client).await?;
                count += 1;
            }
            anyhow::Ok(count)
        })
    });
    let counts: Vec<u32> = try_join_all(counts).await?.into_iter().collect::<anyhow::Result<_>>()?;
    let took = BootClock.now().since(start);
    lease.shutdown(Duration::ZERO).await;
    Ok(f64::from(counts.iter().sum::<u32>()) / took.as_secs_f64())
}

async fn pair(lease: Lease, client: usize) -> anyhow::Result<()> {
    let name = format!("pair-{client}");
    let guard = lease.try_acquire(&name, TTL).await?;
    guard.context("nobody else has it")?.release().await?;
    Ok(())
}

/// Our two statements with pgbench's variables for their values.
pub(crate) fn pgbench_script() -> anyhow::Result<String> {
    let microseconds = TTL.as_micros();
    let mut script = format!("\\set holder random(1, 1000000000000)\n\\set ttl {microseconds}\n\\set least 0\n");
    for (name, third) in [("Acquire", ":ttl"), ("Release", ":least")] {
        let text = statement(name).with_context(|| format!("no statement {name}"))?;
        script += &text
            .replace("$1", "('pair-' || :client_id::text)::text")
            .replace("$2", ":holder::text")
            .replace("$3", &format!("{third}::bigint"));
        script += "\n";
    }
    Ok(script)
}

/// A statement with its semicolon.
pub(crate) fn statement(name: &str) -> Option<&'static str> {
    let (_, rest) = STATEMENTS.split_once(&format!("-- {name}\n"))?;
    rest.lines().next()
}

/// Pairs per second by pgbench.
pub(crate) fn pgbench_pairs(
    pgbench: &Path,
    script: &Path,
    url: &str,
    connections: usize,
    seconds: u64,
) -> anyhow::Result<f64> {
    let mut command = Command::new(pgbench);
    command.args(["--no-vacuum", "--protocol=prepared", "--jobs"]);
    command.arg(connections.min(2).to_string());
    command.arg("--client").arg(connections.to_string());
    command.arg("--time").arg(seconds.to_string());
    command.arg("--file").arg(script).arg(url);
    let output = command
        .output()
        .with_context(|| format!("running {}", pgbench.display()))?;
    let (text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(output.status.success(), "pgbench failed:\n{text}\n{errors}");
    tps(&text).with_context(|| format!("pgbench told no transactions per second:\n{text}\n{errors}"))
}

fn tps(output: &str) -> Option<f64> {
    let line = output.lines().find_map(|line| line.strip_prefix("tps = "))?;
    line.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_statements_are_in_the_script_with_all_their_values() {
        let script = pgbench_script().unwrap();
        assert!(
            script.contains("SKIP LOCKED") && script.contains("SET released_at"),
            "{script}"
        );
        assert!(!script.contains('$'), "{script}");
        assert_eq!(script.lines().count(), 5);
    }

    #[test]
    fn the_rate_is_read_from_what_pgbench_prints() {
        let output = "number of failed transactions: 0 (0.000%)\ntps = 1234.500000 (without initial connection time)\n";
        assert_eq!(tps(output), Some(1234.5));
        assert_eq!(tps("tps"), None);
    }
}

//! `measure run`: what `lease run` adds to the time of a command that does nothing.
//!
//! The two run in turn. What counts is the median of the differences. With a server two round trips are allowed for, as an open
//! connection has them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use lease_core::{BootClock, Clock};
use serde_json::json;

use super::database::{Measured, Onlooker};
use super::median::{hundredths, median};
use crate::report::{Report, note};
use crate::run::{cargo, must};

/// In milliseconds.
const AIM: f64 = 15.0;

/// What the measurement can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many runs of each, in turn.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    must(&mut cargo(["build", "--quiet", "--release", "--package", "lease-cli"]))?;
    let lease = std::env::current_exe()?;
    let lease = lease
        .ancestors()
        .find(|folder| folder.ends_with("target"))
        .context("this is not in a target folder")?;
    let lease = lease.join("release/lease");
    let folder = tempfile::tempdir()?;
    let file = format!("sqlite:{}", folder.path().join("leases.db").display());
    let measured = Measured::start()?;
    let round_trip = round_trip(measured.database.url())?;

    let mut report = Report::new(&["database", "true_ms", "lease_ms", "added_ms", "least", "most", "aim"]);
    report.fact("runs", args.runs);
    report.fact("round_trip_ms", hundredths(round_trip));
    let server = ("postgres", measured.database.url(), AIM + 2.0 * round_trip);
    for (database, url, aim) in [("sqlite", file.as_str(), AIM), server] {
        must(Command::new(&lease).args(["migrate", "--quiet", "--url", url]))?;
        let (mut alone, mut under, mut added) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..args.runs {
            let without = took(&mut Command::new("true"))?;
            let with = took(&mut under_lease(&lease, url))?;
            alone.push(without);
            under.push(with);
            added.push(with - without);
        }
        let figure = median(&mut added);
        note(format_args!("{database}: {figure:.1} ms more"));
        report.row([
            json!(database),
            hundredths(median(&mut alone)),
            hundredths(median(&mut under)),
            hundredths(figure),
            hundredths(added[0]),
            hundredths(added[added.len() - 1]),
            hundredths(aim),
        ]);
        if figure > aim {
            report.miss(format!("{database}: {figure:.1} ms more, not {aim:.1}"));
        }
    }
    Ok(report)
}

/// The median, in milliseconds.
fn round_trip(url: &str) -> anyhow::Result<f64> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let onlooker = Onlooker::connect(url).await?;
        let mut times = Vec::new();
        for _ in 0..200 {
            let began = BootClock.now();
            onlooker.simple_query("SELECT 1").await?;
            times.push(BootClock.now().since(began).as_secs_f64() * 1_000.0);
        }
        Ok(median(&mut times))
    })
}

fn under_lease(lease: &PathBuf, url: &str) -> Command {
    let mut command = Command::new(lease);
    command.args(["run", "job", "--", "true"]).env("LEASE_URL", url);
    command
}

/// In milliseconds.
fn took(command: &mut Command) -> anyhow::Result<f64> {
    command.stdin(Stdio::null());
    let began = BootClock.now();
    let status = command.status()?;
    let took = BootClock.now().since(began);
    let program = Path::new(command.get_program()).display();
    ensure!(status.success(), "{program} ended with {status}");
    Ok(took.as_secs_f64() * 1_000.0)
}

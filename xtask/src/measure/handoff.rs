//! `measure handoff`: from the end of one pod's work to the beginning of the next one's, who waits being told or polling; after a
//! holder's death; and what the telling costs those who release.

mod cost;
mod floor;
mod killed;

use std::time::Duration;

use anyhow::Context;
use lease_core::{BootClock, Clock, Lease, Moment, Outcome, Wait};
use lease_postgres::PostgresRepo;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::database::Measured;
use super::median::{hundredths, median};
use super::optimized;
use crate::report::{Report, note};

pub(crate) use killed::{HolderArgs, run_holder};

/// What the measurement can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many times a lease goes from one pod to another that is told.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    told: u32,
    /// How many times to one that polls.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    polled: u32,
    /// How many holders are killed.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    killed: u32,
    /// How many pairs of runs say what telling costs, one of which tells.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// How many releases each of these runs has.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
    releases: u32,
}

/// One way from pod to pod.
struct Way {
    what: &'static str,
    notify: bool,
    ttl: Duration,
    /// From the time a pod begins to wait to the release: at least, and spread over how much more.
    wait: (Duration, Duration),
    /// In milliseconds, for the median, the 99th of a hundred, and the slowest.
    aims: [Option<f64>; 3],
}

const TOLD: Way = Way {
    what: "release, told",
    notify: true,
    ttl: Duration::from_secs(60),
    wait: (Duration::from_millis(20), Duration::from_millis(50)),
    aims: [Some(2.0), Some(20.0), None],
};

/// A third of the ttl is a second, the longest interval.
const POLLED: Way = Way {
    what: "release, polled",
    notify: false,
    ttl: Duration::from_secs(3),
    wait: (Duration::from_millis(50), Duration::from_millis(1_000)),
    aims: [None, None, Some(1_000.0)],
};

/// The first rounds open connections.
const WARM_UP: u32 = 4;
/// How often those who are told and the statements alone take turns.
const TURNS: u32 = 10;

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    optimized()?;
    let measured = Measured::start()?;
    let url = measured.database.url();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async { PostgresRepo::connect(url).await?.migrate().await })?;

    let mut report = Report::new(&["what", "rounds", "median_ms", "p99_ms", "slowest_ms", "aim"]);
    if args.told < 500 || args.polled < 40 || args.killed < 20 || args.pairs < 20 {
        report.miss("fewer than 500 releases that are told, 40 that are polled for, 20 deaths, or 20 pairs of runs");
    }
    runtime.block_on(told(url, args.told, &mut report))?;
    note(format_args!("{}: {} rounds", POLLED.what, args.polled));
    let times = runtime.block_on(hand_over(url, &POLLED, args.polled))?;
    line(&mut report, POLLED.what, times, POLLED.aims);
    note(format_args!("{} holders are killed", args.killed));
    let late = runtime.block_on(killed::measure(url, args.killed))?;
    line(
        &mut report,
        "killed, after its expiry",
        late,
        [None, None, Some(killed::AIM_MS)],
    );
    runtime.block_on(cost::measure(url, args.pairs, args.releases, &mut report))?;
    Ok(report)
}

/// Hand-overs to one that is told, in turn with the statements of as many alone.
async fn told(url: &str, rounds: u32, report: &mut Report) -> anyhow::Result<()> {
    let (mut ours, mut alone, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let turns = TURNS.min(rounds);
    for turn in 0..turns {
        let rounds = rounds / turns + u32::from(turn < rounds % turns);
        note(format_args!("{}: {rounds} rounds", TOLD.what));
        let (mut one, mut other) = (hand_over(url, &TOLD, rounds).await?, floor::measure(url, rounds).await?);
        ratios.push(median(&mut one) / median(&mut other));
        ours.append(&mut one);
        alone.append(&mut other);
    }
    line(report, TOLD.what, ours, TOLD.aims);
    line(report, "its two statements alone", alone, [None; 3]);
    report.fact("told_over_alone", hundredths(median(&mut ratios)));
    Ok(())
}

/// Adds a line, and says which of its aims are missed.
fn line(report: &mut Report, what: &str, mut times: Vec<f64>, aims: [Option<f64>; 3]) {
    let rounds = times.len();
    let figures = [
        ("median", median(&mut times)),
        ("p99", times[(rounds * 99).div_ceil(100) - 1]),
        ("slowest", times[rounds - 1]),
    ];
    let mut wanted = Vec::new();
    for ((figure, is), aim) in figures.iter().zip(aims) {
        let Some(aim) = aim else { continue };
        wanted.push(format!("{figure} {aim}"));
        if *is > aim {
            report.miss(format!("{what}: {figure} {is:.2} ms, not {aim}"));
        }
    }
    report.row([
        json!(what),
        json!(rounds),
        hundredths(figures[0].1),
        hundredths(figures[1].1),
        hundredths(figures[2].1),
        json!(wanted.join(", ")),
    ]);
}

/// Two pods take turns. Answers how long each hand-over took, in milliseconds.
async fn hand_over(url: &str, way: &Way, rounds: u32) -> anyhow::Result<Vec<f64>> {
    let pod = async || anyhow::Ok(Lease::new(PostgresRepo::connect(url).await?.notify(way.notify)));
    let pods = [pod().await?, pod().await?];
    let mut times = Vec::new();
    let mut holder = Turn::begin(&pods[0], way.ttl);
    let mut began = (&mut holder.began).await?;
    for round in 0..rounds + WARM_UP {
        let mut waiter = Turn::begin(&pods[(round as usize + 1) % 2], way.ttl);
        let (least, more) = way.wait;
        BootClock
            .sleep_until(BootClock.now().max(began) + least + more.mul_f64(share(round)))
            .await;
        let ended = holder.end().await?;
        began = (&mut waiter.began).await?;
        if round >= WARM_UP {
            times.push(began.since(ended).as_secs_f64() * 1_000.0);
        }
        holder = waiter;
    }
    holder.end().await?;
    Ok(times)
}

/// Steps of the golden ratio spread over an interval evenly, whatever the pace of who polls.
fn share(round: u32) -> f64 {
    (f64::from(round) * 0.618_034).fract()
}

/// One pod's tenure: it waits, works until it is told, and releases.
struct Turn {
    /// When f began.
    began: oneshot::Receiver<Moment>,
    go: oneshot::Sender<()>,
    /// When f ended.
    ended: JoinHandle<anyhow::Result<Moment>>,
}

impl Turn {
    fn begin(pod: &Lease, ttl: Duration) -> Self {
        let (begins, began) = oneshot::channel();
        let (go, told) = oneshot::channel();
        let pod = pod.clone();
        let ended = tokio::spawn(async move {
            let guard = pod.acquire("handed-over", ttl, Wait::Forever).await?;
            let outcome = guard.run(async |_| {
                let _ = begins.send(BootClock.now());
                let _ = told.await;
                BootClock.now()
            });
            match outcome.await {
                Outcome::Ran(ran) => Ok(ran.value),
                other => anyhow::bail!("the lease was not kept: {other:?}"),
            }
        });
        Self { began, go, ended }
    }

    async fn end(self) -> anyhow::Result<Moment> {
        self.go.send(()).ok().context("it has ended before")?;
        self.ended.await?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_aim_is_for_its_own_figure() {
        let times = || (1..=200).map(f64::from).collect::<Vec<_>>();
        for (aims, missed) in [
            ([Some(100.5), Some(198.0), Some(200.0)], None),
            ([Some(100.0), None, None], Some("told: median 100.50 ms, not 100")),
            ([None, Some(197.0), None], Some("told: p99 198.00 ms, not 197")),
            ([None, None, Some(199.0)], Some("told: slowest 200.00 ms, not 199")),
        ] {
            let mut report = Report::new(&["what", "rounds", "median_ms", "p99_ms", "slowest_ms", "aim"]);
            line(&mut report, "told", times(), aims);
            let missed: Vec<_> = missed.into_iter().collect();
            assert_eq!(report.to_json()["missed"], json!(missed));
        }
    }
}

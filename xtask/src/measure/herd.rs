//! `measure herd`: contenders in several processes, all at once on one row.

mod pod;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::database::{Measured, Onlooker};
use crate::report::Report;
use pod::Pod;

pub(crate) use pod::{Args as PodArgs, run as run_pod};

/// What the measurement can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many processes; at least two.
    #[arg(long, default_value_t = 4)]
    processes: u32,
    /// How many contenders there are in all of them.
    #[arg(long, default_value_t = 64)]
    contenders: u32,
    /// How many rounds on each kind of row, at each isolation level.
    #[arg(long, default_value_t = 200)]
    rounds: u32,
    /// The database's default isolation levels to run under; all three if left out.
    #[arg(long, value_enum)]
    isolation: Vec<Isolation>,
}

/// A database's default isolation level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

const EVERY_LEVEL: [Isolation; 3] = [
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];

impl Isolation {
    const fn sql(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }
}

/// The row that the contenders meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Absent,
    JustExpired,
}

/// What one process says of a round.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Round {
    winners: Vec<String>,
    busy: u32,
    /// Of the busy ones, those that were told who won.
    told: u32,
    errors: Vec<String>,
    slowest_us: u64,
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let columns = &[
        "isolation",
        "row",
        "rounds",
        "one winner",
        "busy",
        "told who",
        "errors",
        "median ms",
        "slowest ms",
    ];
    let mut report = Report::new(columns);
    let levels = if args.isolation.is_empty() {
        EVERY_LEVEL.to_vec()
    } else {
        args.isolation.clone()
    };
    // What one process, or one level, can't show is no proof.
    if args.processes < 2 {
        report.miss("contenders of one process prove nothing about pods: run at least two processes");
    }
    if let Some(level) = EVERY_LEVEL.iter().find(|level| !levels.contains(level)) {
        report.miss(format!("{} was left out", level.sql()));
    }
    if args.contenders < 64 || args.rounds < 200 {
        report.miss("fewer than 64 contenders or 200 rounds");
    }
    let measured = Measured::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let repo = lease_postgres::PostgresRepo::connect(measured.database.url()).await?;
        repo.migrate().await?;
        for level in levels {
            under(&mut report, measured.database.url(), level, args).await?;
        }
        Ok(report)
    })
}

async fn under(report: &mut Report, url: &str, level: Isolation, args: &Args) -> anyhow::Result<()> {
    let onlooker = Onlooker::connect(url).await?;
    let database: String = onlooker
        .query_one("SELECT current_database()::text", &[])
        .await?
        .try_get(0)?;
    let level_name = level.sql();
    let set = format!("ALTER DATABASE \"{database}\" SET default_transaction_isolation = '{level_name}'");
    onlooker.batch_execute(&set).await?;
    // Sessions opened from here on have it.
    let onlooker = Onlooker::connect(url).await?;
    let share = args.contenders.div_ceil(args.processes);
    let mut pods = (0..args.processes)
        .map(|_| Pod::start(url, share))
        .collect::<anyhow::Result<Vec<_>>>()?;
    for found in [Found::Absent, Found::JustExpired] {
        let mut times = Vec::new();
        let (mut single, mut total) = (0, Round::default());
        for number in 0..args.rounds {
            let name = format!("{level_name}-{found:?}-{number}");
            if found == Found::JustExpired {
                let insert = "INSERT INTO task_leases (name, holder, token, acquired_at, expires_at) \
                              VALUES ($1, 'before', 1, clock_timestamp(), clock_timestamp())";
                onlooker.execute(insert, &[&name]).await?;
            }
            let round = play(&mut pods, &name)?;
            let holder: String = onlooker
                .query_one("SELECT holder FROM task_leases WHERE name = $1", &[&name])
                .await?
                .try_get(0)?;
            if round.winners == [holder] {
                single += 1;
            }
            times.push(round.slowest_us);
            total.busy += round.busy;
            total.told += round.told;
            total.errors.extend(round.errors);
        }
        times.sort_unstable();
        let ms = |us: u64| json!(Duration::from_micros(us).as_millis() as u64);
        let (median, slowest) = (times[times.len() / 2], times.last().copied().unwrap_or_default());
        report.row([
            json!(level_name),
            json!(format!("{found:?}")),
            json!(args.rounds),
            json!(single),
            json!(total.busy),
            json!(total.told),
            json!(total.errors.len()),
            ms(median),
            ms(slowest),
        ]);
        if single != args.rounds {
            report.miss(format!(
                "{level_name}, {found:?}: {single} of {} rounds had one winner",
                args.rounds
            ));
        }
        if !total.errors.is_empty() {
            let mut kinds: BTreeMap<&str, u32> = BTreeMap::new();
            total
                .errors
                .iter()
                .for_each(|error| *kinds.entry(error).or_default() += 1);
            report.miss(format!("{level_name}, {found:?}: errors surfaced: {kinds:?}"));
        }
    }
    Ok(())
}

/// Lets all processes go at the same time, and adds up what they say.
fn play(pods: &mut [Pod], name: &str) -> anyhow::Result<Round> {
    for pod in pods.iter_mut() {
        pod.go(name)?;
    }
    let mut sum = Round::default();
    for pod in pods {
        let round = pod.answer().with_context(|| format!("round {name}"))?;
        sum.winners.extend(round.winners);
        sum.busy += round.busy;
        sum.told += round.told;
        sum.errors.extend(round.errors);
        sum.slowest_us = sum.slowest_us.max(round.slowest_us);
    }
    Ok(sum)
}

//! Renewals on two databases of one PostgreSQL server, in one of which a snapshot stays open meanwhile.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bench_harness::{Place, finish};
use bench_ours::Backend;
use clap::Parser;
use lease_core::{Acquire, Claim, Label, LeaseName, Renew, Repo};
use lease_postgres::PostgresRepo;
use serde::Serialize;
use tokio_postgres::{Client, NoTls};

/// What it is told.
#[derive(Debug, Parser)]
struct Args {
    /// The database without the snapshot.
    #[arg(long, env = "BENCH_PLAIN", hide_env_values = true)]
    plain: String,
    /// The database with it.
    #[arg(long, env = "BENCH_AGED", hide_env_values = true)]
    aged: String,
    /// How many seconds it stays open.
    #[arg(long)]
    open: u32,
    /// How many seconds are looked at after it has been closed.
    #[arg(long)]
    after: u32,
    /// How many leases are held beside the one that is renewed all the time.
    #[arg(long, default_value_t = 1_000)]
    leases: usize,
    /// Seconds between two renewals of those.
    #[arg(long, default_value_t = 10)]
    every: u32,
}

/// Renewals of the one in a second.
const HOT: u32 = 10;

/// A second of one database.
#[derive(Debug, Serialize)]
struct Sample {
    second: u32,
    aged: bool,
    table_bytes: i64,
    index_bytes: i64,
    dead: i64,
    /// The median of the second's renewals of the one lease.
    renewal_us: f64,
    /// The last renewal of all others together.
    batch_ms: f64,
}

fn main() -> ExitCode {
    finish(age(&Args::parse()))
}

fn age(args: &Args) -> anyhow::Result<Vec<Sample>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut plain = Held::start(&args.plain, args.leases).await?;
        let mut aged = Held::start(&args.aged, args.leases).await?;
        let reader = connect(&args.aged).await?;
        let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM task_leases";
        reader.batch_execute(snapshot).await?;
        let mut samples = Vec::new();
        for second in 0..args.open + args.after {
            if second == args.open {
                reader.batch_execute("COMMIT").await?;
            }
            let due = Instant::now() + Duration::from_secs(1);
            // One after the other: neither is to wait for the other's processor.
            for (held, is_aged) in [(&mut plain, false), (&mut aged, true)] {
                samples.push(held.second(second, args.every, is_aged).await?);
            }
            tokio::time::sleep_until(due.into()).await;
        }
        Ok(samples)
    })
}

/// What is held in one database.
struct Held {
    repo: PostgresRepo,
    onlooker: Client,
    hot: Claim,
    others: Vec<Claim>,
    batch_ms: f64,
}

impl Held {
    async fn start(url: &str, leases: usize) -> anyhow::Result<Self> {
        let ttl = Duration::from_secs(3_600);
        let place = Place {
            url: url.to_owned(),
            ttl,
            notify: false,
        };
        let repo = PostgresRepo::open(&place, 1).await?;
        repo.make_table().await?;
        let label = Label::new("bench")?;
        let claim = |name: String| anyhow::Ok(Claim::new(LeaseName::new(name)?, label.new_holder(), ttl));
        let held = Self {
            hot: claim("hot".into())?,
            others: (0..leases)
                .map(|n| claim(format!("held-{n}")))
                .collect::<Result<_, _>>()?,
            onlooker: connect(url).await?,
            repo,
            batch_ms: 0.0,
        };
        for claim in held.others.iter().chain([&held.hot]) {
            let answer = held.repo.acquire(claim).await?;
            ensure!(matches!(answer, Acquire::Granted(_)), "nobody else has it");
        }
        held.onlooker.batch_execute("ANALYZE task_leases").await?;
        Ok(held)
    }

    async fn second(&mut self, second: u32, every: u32, aged: bool) -> anyhow::Result<Sample> {
        if second.is_multiple_of(every) {
            let began = Instant::now();
            for answer in self.repo.renew_all(&self.others).await {
                ensure!(answer? == Renew::Renewed, "it is ours");
            }
            self.batch_ms = began.elapsed().as_secs_f64() * 1_000.0;
        }
        let mut times = Vec::new();
        for _ in 0..HOT {
            let began = Instant::now();
            ensure!(self.repo.renew(&self.hot).await? == Renew::Renewed, "it is ours");
            times.push(began.elapsed().as_secs_f64() * 1e6);
        }
        times.sort_unstable_by(f64::total_cmp);
        let look = "SELECT pg_table_size('task_leases'), pg_indexes_size('task_leases'), \
                    (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'task_leases')";
        let row = self.onlooker.query_one(look, &[]).await?;
        Ok(Sample {
            second,
            aged,
            table_bytes: row.try_get(0)?,
            index_bytes: row.try_get(1)?,
            dead: row.try_get(2)?,
            renewal_us: *times.get(times.len() / 2).context("there were some")?,
            batch_ms: self.batch_ms,
        })
    }
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

//! One pod: it wants every lease it knows, all the time, works under them, and writes all of it down.

mod forgetful;
mod work;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use lease_core::{BootClock, Clock, Inspect, Label, Lease, OnLost, Options, Outcome, Repo, Skip};
use lease_mysql::MysqlRepo;
use lease_postgres::PostgresRepo;
use tokio::sync::watch;

use crate::engine::{DRIFT, Engine, SHARED, TTL, own};
use crate::line::Book;
use forgetful::Forgetful;
use work::work;
use writer::Writer;

/// The variable with the database's URL.
pub(crate) const URL: &str = "LEASE_CHAOS_URL";

/// What a pod is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    engine: Engine,
    /// Counted from 0.
    #[arg(long)]
    number: usize,
    /// Where it writes down what it does.
    #[arg(long)]
    book: PathBuf,
    /// The rule that it breaks on purpose.
    #[arg(long)]
    mutant: Option<Mutant>,
}

/// A rule broken on purpose, so that the checker can show that it notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mutant {
    /// f goes on after its time is over: the keeper tells it and does not drop it.
    IgnoresDropAt,
    /// A lease that another has is taken all the same.
    ForgetsHolder,
}

/// Works until it is killed.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let url = std::env::var(URL).context("a pod is started by a world")?;
    // What is not there yet, or not any more, when it starts, it finds later.
    if args.engine.is_postgres() {
        with(&args, &url, PostgresRepo::lazy(&url)?).await
    } else {
        with(&args, &url, MysqlRepo::lazy(&url)?).await
    }
}

async fn with<R: Repo + Inspect + Clone>(args: &Args, url: &str, repo: R) -> anyhow::Result<()> {
    let label = Label::new(format!("pod-{}", args.number + 1))?;
    let lease = match args.mutant {
        Some(Mutant::ForgetsHolder) => Lease::with_holder(Forgetful(repo), label),
        _ => Lease::with_holder(repo, label),
    };
    let book = Arc::new(Book::open(&args.book)?);
    let mut options = Options::from(TTL).drift(DRIFT);
    if args.mutant == Some(Mutant::IgnoresDropAt) {
        options = options.on_lost(OnLost::SignalOnly);
    }
    let is_broken = args.mutant.is_some();
    let mut tasks = tokio::task::JoinSet::new();
    for (name, longest) in SHARED
        .map(|name| (name.to_owned(), 6_000))
        .into_iter()
        .chain([(own(args.number), 700)])
    {
        let job = lease.job(&name, options.clone())?;
        let (now_held, held) = watch::channel(None);
        let writer = Writer::new(args.engine, url, args.number);
        tasks.spawn(writer.write_all(held, book.clone()));
        let book = book.clone();
        tasks.spawn(async move {
            loop {
                // One that breaks a rule is to be at work when it counts.
                let shortest = if is_broken { longest - 1 } else { 300 };
                let length = Duration::from_millis(fastrand::u64(shortest..longest));
                let outcome = job.run(|held| work(held, length, &now_held, &book)).await;
                // At once after a tenure: the others are to have to wait for the release.
                let pause = match &outcome {
                    Outcome::Skipped(skip) => {
                        if let Skip::Store(error) = skip {
                            eprintln!("{} {name}: {}", crate::line::now(), told(error));
                        }
                        fastrand::u64(80..160)
                    }
                    Outcome::Dropped { stop, .. } => {
                        eprintln!("{} {name}: dropped: {stop}", crate::line::now());
                        20
                    }
                    Outcome::Ran(ran) => {
                        if let Err(error) = &ran.release {
                            eprintln!("{} {name}: {}", crate::line::now(), told(error));
                        }
                        20
                    }
                    _ => 20,
                };
                BootClock
                    .sleep_until(BootClock.now() + Duration::from_millis(pause))
                    .await;
            }
        });
    }
    // None of them ends, but by a panic.
    match tasks.join_next().await {
        Some(ended) => ended.context("a task of the pod"),
        None => Ok(()),
    }
}

/// An error with its causes.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

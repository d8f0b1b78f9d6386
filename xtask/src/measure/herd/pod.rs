//! One process of the herd: for each name on its input, all its contenders ask at once.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use lease_core::{Acquire, BootClock, Claim, Clock, Label, LeaseName, Repo};
use lease_postgres::PostgresRepo;
use tokio::sync::Barrier;

use super::Round;

/// The variable with the database's URL.
const URL: &str = "LEASE_HERD_URL";

/// What a process of the herd is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many contenders it has.
    #[arg(long)]
    contenders: u32,
}

/// The parent's end of one process, which ends with it.
pub(super) struct Pod {
    child: Child,
    names: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Pod {
    pub(super) fn start(url: &str, contenders: u32) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["herd-pod", "--contenders", &contenders.to_string()])
            .env(URL, url);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let names = child.stdin.take().context("its input is a pipe")?;
        let answers = BufReader::new(child.stdout.take().context("its output is a pipe")?);
        let mut pod = Self { child, names, answers };
        // Its connections are open before the first round.
        pod.answer()?;
        Ok(pod)
    }

    pub(super) fn go(&mut self, name: &str) -> anyhow::Result<()> {
        writeln!(self.names, "{name}")?;
        Ok(self.names.flush()?)
    }

    pub(super) fn answer(&mut self) -> anyhow::Result<Round> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line).context("a process of the herd ended")
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the process until its input ends.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let contenders = runtime.block_on(async {
        let first = PostgresRepo::connect(&std::env::var(URL)?).await?;
        // A clone has a pool, and so connections, of its own.
        let contenders: Vec<_> = (0..args.contenders).map(|_| Arc::new(first.clone())).collect();
        let warm = LeaseName::from_static("herd-warm-up");
        for contender in &contenders {
            contender.acquire(&claim(&warm)).await?;
        }
        anyhow::Ok(contenders)
    })?;
    say(&Round::default())?;
    for name in std::io::stdin().lock().lines() {
        let name = LeaseName::new(name?)?;
        say(&runtime.block_on(round(&contenders, &name)))?;
    }
    Ok(())
}

async fn round(contenders: &[Arc<PostgresRepo>], name: &LeaseName) -> Round {
    let start = Arc::new(Barrier::new(contenders.len()));
    let asked: Vec<_> = contenders
        .iter()
        .map(|contender| {
            let (contender, start, claim) = (contender.clone(), start.clone(), claim(name));
            tokio::spawn(async move {
                start.wait().await;
                let sent_at = BootClock.now();
                let answer = contender.acquire(&claim).await;
                (claim.holder, answer, BootClock.now().since(sent_at))
            })
        })
        .collect();
    let mut round = Round::default();
    for asked in asked {
        let (holder, answer, took) = match asked.await {
            Ok(ended) => ended,
            Err(error) => {
                round.errors.push(error.to_string());
                continue;
            }
        };
        round.slowest_us = round
            .slowest_us
            .max(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        match answer {
            Ok(Acquire::Granted(_)) => round.winners.push(holder.to_string()),
            Ok(Acquire::Busy(incumbent)) => {
                round.busy += 1;
                round.told += u32::from(incumbent.is_some());
            }
            Err(error) => round.errors.push(error.kind().to_string()),
        }
    }
    round
}

fn claim(name: &LeaseName) -> Claim {
    let holder = Label::new("herd").expect("a legal label").new_holder();
    Claim::new(name.clone(), holder, Duration::from_secs(60))
}

fn say(round: &Round) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(round)?;
    text.push('\n');
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(std::io::stdout().flush()?)
}

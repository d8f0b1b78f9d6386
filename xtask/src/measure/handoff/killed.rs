//! A holder is killed, and who waits begins soon after its lease has expired.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use lease_core::{BootClock, Clock, Lease, Wait};
use lease_postgres::PostgresRepo;

use crate::measure::database::Onlooker;

/// How long after the expiry who waits may begin, in milliseconds.
pub(super) const AIM_MS: f64 = 100.0;

const TTL: Duration = Duration::from_secs(2);
/// The variable with the database's URL.
const URL: &str = "LEASE_HANDOFF_URL";

/// What the process that will be killed is told.
#[derive(Debug, clap::Args)]
pub(crate) struct HolderArgs {
    /// The lease it holds.
    #[arg(long)]
    name: String,
}

/// Runs that process: it holds the lease until it is killed.
#[expect(clippy::print_stdout, reason = "what it says is for its parent, through a pipe")]
pub(crate) fn run_holder(args: &HolderArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let lease = Lease::new(PostgresRepo::connect(&std::env::var(URL)?).await?);
        let guard = lease.try_acquire(&args.name, TTL).await?;
        let _guard = guard.context("nobody else has it")?;
        println!("held");
        std::future::pending().await
    })
}

/// Answers how many milliseconds after the expiry of a dead holder's lease the next one began.
pub(super) async fn measure(url: &str, rounds: u32) -> anyhow::Result<Vec<f64>> {
    let onlooker = Onlooker::connect(url).await?;
    let lease = Lease::new(PostgresRepo::connect(url).await?);
    let sleep = |time| BootClock.sleep_until(BootClock.now() + time);
    let mut late = Vec::new();
    for round in 0..rounds {
        let name = format!("killed-{round}");
        let mut holder = Holder::start(url, &name)?;
        let (waiter, waits_for) = (lease.clone(), name.clone());
        let waiting = tokio::spawn(async move {
            let guard = waiter.acquire(&waits_for, TTL, Wait::Forever).await?;
            guard
                .run(async |_| BootClock.now())
                .await
                .into_value()
                .context("it began")
        });
        // Over a whole ttl, so that it dies at any time between two renewals.
        sleep(TTL / 4 + TTL * round / rounds).await;
        holder.kill()?;
        // A renewal that it had sent may still be under way.
        sleep(Duration::from_millis(50)).await;
        let left = format!(
            "SELECT (extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint FROM task_leases WHERE name = '{name}'"
        );
        let asked_at = BootClock.now();
        let left = onlooker.number(&left).await?;
        ensure!(!waiting.is_finished(), "it can't be had before its expiry");
        let expires_at = asked_at + Duration::from_micros(u64::try_from(left).context("it expired already")?);
        let began = waiting.await??;
        late.push(began.since(expires_at).as_secs_f64() * 1_000.0);
    }
    Ok(late)
}

/// A process that holds a lease. It does not outlive this.
struct Holder(Child);

impl Holder {
    fn start(url: &str, name: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["handoff-holder", "--name", name]).env(URL, url);
        let mut holder = Self(command.stdout(Stdio::piped()).spawn()?);
        let mut line = String::new();
        let output = holder.0.stdout.take().context("its output is a pipe")?;
        BufReader::new(output).read_line(&mut line)?;
        ensure!(line == "held\n", "it holds no lease");
        Ok(holder)
    }

    /// By SIGKILL; it is gone afterwards.
    fn kill(&mut self) -> anyhow::Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

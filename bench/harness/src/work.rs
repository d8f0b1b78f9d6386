//! [`Work`]: what can be done with a library, and what a program is told about it.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use serde_json::json;

use crate::{Contender, Gate, Outcome, Place, works};

/// What each program of this workspace is told.
#[derive(Debug, Parser)]
pub struct Args {
    /// Which library, and which way of using it.
    pub who: String,
    /// The server's URL, or the path of a file.
    #[arg(long, env = "BENCH_URL", hide_env_values = true)]
    pub url: String,
    /// How long what is taken lasts, in milliseconds.
    #[arg(long, default_value_t = 60_000)]
    pub ttl_ms: u64,
    /// Releases tell who waits, where that is a choice.
    #[arg(long)]
    pub notify: bool,
    /// What to do.
    #[command(subcommand)]
    pub work: Work,
}

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub enum Work {
    /// Makes the table.
    Prepare,
    /// Each client takes a lease of its own and releases it, again and again.
    Pairs {
        /// How many clients of one pod.
        #[arg(long)]
        clients: usize,
        /// For how long.
        #[arg(long)]
        seconds: f64,
    },
    /// Each pod tries to take what another holds, again and again.
    Lose {
        /// How many pods with a client each.
        #[arg(long)]
        pods: usize,
        /// For how long.
        #[arg(long)]
        seconds: f64,
        /// At most once in so many milliseconds each; as fast as it goes if left out.
        #[arg(long)]
        every_ms: Option<u64>,
        /// Somebody else takes it before the gate opens.
        #[arg(long)]
        held_elsewhere: bool,
    },
    /// Each client renews a lease, again and again.
    Renew {
        /// How many clients of one pod.
        #[arg(long)]
        clients: usize,
        /// For how long.
        #[arg(long)]
        seconds: f64,
        /// The lease, for a single client.
        #[arg(long)]
        name: Option<String>,
    },
    /// Two pods take turns; what counts is from the call of a release to the other one's grant.
    Handoff {
        /// How many turns.
        #[arg(long)]
        rounds: u32,
    },
    /// One pod holds many leases and does nothing.
    Held {
        /// How many.
        #[arg(long)]
        count: usize,
        /// For how long it is looked at, after two thirds of the time to live.
        #[arg(long)]
        seconds: f64,
    },
    /// Many pods tick on one lease; who gets it works for a moment.
    Ticks {
        /// How many pods with a client each.
        #[arg(long)]
        pods: usize,
        /// For how long.
        #[arg(long)]
        seconds: f64,
        /// Between two ticks of a pod.
        #[arg(long)]
        every_ms: u64,
        /// How long the work takes.
        #[arg(long)]
        work_ms: u64,
    },
}

/// Does the work with one library.
///
/// # Errors
/// The library or the server failed, or the library did what it must not: grant what another holds, lose what it renews.
pub fn run<C: Contender>(args: &Args) -> anyhow::Result<Outcome> {
    let place = Place {
        url: args.url.clone(),
        ttl: Duration::from_millis(args.ttl_ms),
        notify: args.notify,
    };
    let clients = match args.work {
        Work::Pairs { clients, .. } | Work::Renew { clients, .. } => clients,
        Work::Lose { pods, .. } | Work::Ticks { pods, .. } => pods,
        Work::Prepare | Work::Handoff { .. } | Work::Held { .. } => 4,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(C::workers(clients))
        .enable_all()
        .build()?;
    let mut gate = Gate::default();
    runtime.block_on(async {
        match args.work.clone() {
            Work::Prepare => C::prepare(&place).await.map(|()| Outcome::default()),
            Work::Pairs { clients, seconds } => works::pairs::<C>(&place, clients, seconds, &mut gate).await,
            Work::Lose {
                pods,
                seconds,
                every_ms,
                held_elsewhere,
            } => {
                let every = every_ms.map(Duration::from_millis);
                works::lose::<C>(&place, pods, seconds, every, held_elsewhere, &mut gate).await
            }
            Work::Renew { clients, seconds, name } => {
                works::renew::<C>(&place, clients, seconds, name.as_deref(), &mut gate).await
            }
            Work::Handoff { rounds } => works::handoff::<C>(&place, rounds, &mut gate).await,
            Work::Held { count, seconds } => works::held::<C>(&place, count, seconds, &mut gate).await,
            Work::Ticks {
                pods,
                seconds,
                every_ms,
                work_ms,
            } => {
                let (every, work) = (Duration::from_millis(every_ms), Duration::from_millis(work_ms));
                works::ticks::<C>(&place, pods, seconds, every, work, &mut gate).await
            }
        }
    })
}

/// Says what came of it, as the last line of standard output.
#[must_use]
pub fn finish<T: serde::Serialize>(outcome: anyhow::Result<T>) -> ExitCode {
    let (line, code) = match outcome {
        Ok(outcome) => (json!(outcome), ExitCode::SUCCESS),
        Err(error) => (json!({ "error": format!("{error:#}") }), ExitCode::FAILURE),
    };
    let mut output = std::io::stdout().lock();
    // Nobody is left to be told that it can't be written.
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
    code
}

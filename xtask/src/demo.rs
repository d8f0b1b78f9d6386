//! `demo`: three pods as real processes on a real PostgreSQL; one is killed with SIGKILL, another takes over.

mod pod;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context, bail};
use lease_core::{BootClock, Clock, Moment};
use lease_testkit::servers::{Postgres, Settings};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::report::{Report, note};
use crate::test;

pub(crate) use pod::{Args as PodArgs, run as run_pod};

/// How long a lease lasts in the demo: short, so that one sees the takeover.
const TTL: Duration = Duration::from_secs(3);
/// How long a step may take before the demo has failed: what a busy machine never needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// What `demo` can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Installs what is missing on a Debian machine, as root.
    #[arg(long)]
    install: bool,
}

/// What a pod says of itself: one JSON line on its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// By the machine's clock that all its processes share, in microseconds.
    at_us: u64,
    pod: String,
    what: What,
    token: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Waits,
    Works,
    Ended,
}

impl Line {
    fn now(pod: &str, what: What, token: Option<i64>) -> Self {
        let at_us = BootClock.now().as_nanos() / 1_000;
        Self {
            at_us,
            pod: pod.to_owned(),
            what,
            token,
        }
    }
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    test::prepared(args.install)?;
    let server = Postgres::private(&Settings::default())?;
    let database = server.database()?;
    migrate(database.url())?;
    let mut report = Report::new(&["ms", "pod", "what", "token"]);
    let start = BootClock.now();
    let (sender, lines) = channel();
    let mut pods = Vec::new();
    for name in ["pod-1", "pod-2", "pod-3"] {
        pods.push(Pod::start(name, database.url(), sender.clone())?);
    }
    let mut stage = Stage {
        report: &mut report,
        lines,
        start,
    };

    let first = stage.until(|line| line.what == What::Works)?;
    stage.watch(TTL)?;
    let killed = pods
        .iter_mut()
        .find(|pod| pod.name == first.pod)
        .context("the worker is one of ours")?;
    let killed_at = BootClock.now();
    stage.say(killed.name, "killed with SIGKILL", None);
    killed.signal(Signal::SIGKILL)?;

    let second = stage.until(|line| line.what == What::Works)?;
    let takeover = since(&second, killed_at);
    stage.watch(TTL)?;
    let ended = pods
        .iter_mut()
        .find(|pod| pod.name == second.pod)
        .context("the worker is one of ours")?;
    let ended_at = BootClock.now();
    stage.say(ended.name, "told to end by SIGTERM", None);
    ended.signal(Signal::SIGTERM)?;
    let third = stage.until(|line| line.what == What::Works)?;
    let handover = since(&third, ended_at);
    drop(pods);

    report.fact("ttl_ms", millis(TTL));
    report.fact("takeover_after_kill_ms", millis(takeover));
    report.fact("handover_after_end_ms", millis(handover));
    report.fact("tokens", json!([first.token, second.token, third.token]));
    if !(first.token < second.token && second.token < third.token) {
        report.miss("the fencing tokens did not grow");
    }
    if takeover > TTL + Duration::from_secs(1) {
        report.miss("the takeover took longer than the ttl and a second");
    }
    if handover > Duration::from_secs(2) {
        report.miss("the release was not noticed within two seconds");
    }
    Ok(report)
}

fn migrate(url: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let repo = lease_postgres::PostgresRepo::connect(url).await?;
        Ok(repo.migrate().await?)
    })
}

/// What happens, in order, shown while it happens and kept for the report.
struct Stage<'a> {
    report: &'a mut Report,
    lines: Receiver<Line>,
    start: Moment,
}

impl Stage<'_> {
    /// Takes what the pods say until one line fits.
    fn until(&mut self, fits: impl Fn(&Line) -> bool) -> anyhow::Result<Line> {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.show(&line);
                    if fits(&line) {
                        return Ok(line);
                    }
                }
                Err(_) => bail!("no pod said what was waited for within {PATIENCE:?}"),
            }
        }
    }

    /// Takes what the pods say for a while. Nobody else may begin to work meanwhile.
    fn watch(&mut self, duration: Duration) -> anyhow::Result<()> {
        let end = BootClock.now() + duration;
        loop {
            match self.lines.recv_timeout(end.since(BootClock.now())) {
                Ok(line) => {
                    self.show(&line);
                    if line.what == What::Works {
                        bail!("{} works beside another pod", line.pod);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => bail!("every pod has ended"),
            }
        }
    }

    fn show(&mut self, line: &Line) {
        let what = match line.what {
            What::Waits => "waits",
            What::Works => "works",
            What::Ended => "ended its work",
        };
        let at = Moment::from_nanos(line.at_us * 1_000).since(self.start);
        self.add(at, &line.pod, what, line.token);
    }

    fn say(&mut self, pod: &str, what: &str, token: Option<i64>) {
        self.add(BootClock.now().since(self.start), pod, what, token);
    }

    fn add(&mut self, at: Duration, pod: &str, what: &str, token: Option<i64>) {
        let shown = token.map_or(String::new(), |token| format!(", token {token}"));
        note(format_args!("{:>6} ms  {pod}  {what}{shown}", millis(at)));
        self.report
            .row([json!(millis(at)), json!(pod), json!(what), json!(token)]);
    }
}

/// A pod that ends with the demo.
struct Pod {
    name: &'static str,
    child: Child,
}

impl Pod {
    fn start(name: &'static str, url: &str, lines: Sender<Line>) -> anyhow::Result<Self> {
        let ttl = millis(TTL).to_string();
        let mut command = Command::new(std::env::current_exe()?);
        // By the environment, since everybody can read a command line.
        command
            .args(["demo-pod", "--label", name, "--ttl-ms", &ttl])
            .env(pod::URL, url);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("its output is a pipe")?;
        std::thread::spawn(move || {
            for text in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(line) = serde_json::from_str(&text)
                    && lines.send(line).is_err()
                {
                    break;
                }
            }
        });
        Ok(Self { name, child })
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill(Pid::from_raw(self.child.id().try_into()?), signal)?)
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn since(line: &Line, moment: Moment) -> Duration {
    Moment::from_nanos(line.at_us * 1_000).since(moment)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

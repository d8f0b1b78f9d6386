//! [`Stage`]: the pods' processes, what they say, and what is done to them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use lease_core::{BootClock, Clock, Moment};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::check::Check;
use super::pod;
use super::said::{Said, What};
use super::view::{State, View};
use crate::answer::{Failure, code};
use crate::args::Cli;
use crate::database::Url;
use crate::terminal::Ending;

/// How long one step of the story may take: what a busy machine never needs.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Stage {
    pub(super) check: Check,
    /// Who began to work last.
    latest: Option<Said>,
    url: Url,
    folder: PathBuf,
    pods: Vec<Pod>,
    sender: UnboundedSender<Said>,
    inbox: UnboundedReceiver<Said>,
    ending: Ending,
    start: Moment,
    view: View,
    events: Vec<Value>,
}

struct Pod {
    process: Child,
    /// Closed when we die, and then it ends too.
    _input: Option<ChildStdin>,
}

/// What a pod is called.
pub(super) fn name(pod: usize) -> String {
    format!("pod-{}", pod + 1)
}

impl Stage {
    pub(super) fn new(cli: &Cli, url: &Url, folder: &Path, ending: Ending) -> Result<Self, Failure> {
        let (sender, inbox) = unbounded_channel();
        let start = BootClock.now();
        Ok(Self {
            check: Check::default(),
            latest: None,
            url: url.clone(),
            folder: folder.to_owned(),
            pods: Vec::new(),
            sender,
            inbox,
            ending,
            start,
            view: View::new(cli, start),
            events: Vec::new(),
        })
    }

    /// Starts a pod: this very program once more.
    pub(super) fn start(&mut self, pod: usize) -> Result<(), Failure> {
        let cannot = |error| Failure::config(format!("a pod can't be started: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command
            .args(["_pod", "--label", &name(pod), "--folder"])
            .arg(&self.folder)
            .env(pod::URL, self.url.text())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The terminal's Ctrl-C is for us alone.
            .process_group(0)
            .kill_on_drop(true);
        let mut process = command.spawn().map_err(cannot)?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let Some(output) = output else { return };
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(said) = Said::read(pod, &line) {
                    let _ = sender.send(said);
                }
            }
        });
        self.pods.push(Pod { process, _input: input });
        Ok(())
    }

    /// Sends a signal, and tells when.
    pub(super) fn signal(&mut self, pod: usize, signal: Signal, what: &str) -> Result<Moment, Failure> {
        let at = BootClock.now();
        let cannot = |why: String| Failure::config(format!("{} can't be sent {signal}: {why}", name(pod)));
        let id = self.pods[pod].process.id().and_then(|id| i32::try_from(id).ok());
        let id = id.ok_or_else(|| cannot("it has ended".to_owned()))?;
        kill(Pid::from_raw(id), signal).map_err(|error| cannot(error.to_string()))?;
        let state = match signal {
            Signal::SIGKILL => Some(State::Dead),
            Signal::SIGSTOP => Some(State::Paused),
            _ => None,
        };
        self.tell(at, pod, state, what, None)?;
        Ok(at)
    }

    /// Takes what the pods say until one line fits.
    pub(super) async fn until(&mut self, fits: impl Fn(&Said) -> bool) -> Result<Said, Failure> {
        let deadline = BootClock.now() + PATIENCE;
        loop {
            match self.next(deadline).await? {
                Some(said) if fits(&said) => return Ok(said),
                Some(_) => {}
                None => {
                    let text = format!("no pod did within {PATIENCE:?} what was waited for");
                    let code = code::UNAVAILABLE;
                    return Err(Failure { text, code });
                }
            }
        }
    }

    /// Waits until a pod has the lease and works.
    pub(super) async fn takeover(&mut self) -> Result<Said, Failure> {
        self.until(|said| said.what == What::Works).await
    }

    /// Lets the holder work for a while, and says who it is then: on a machine that is too busy to renew in time, another.
    pub(super) async fn works(&mut self, time: Duration) -> Result<Said, Failure> {
        self.watch(time).await?;
        let nobody = || Failure::config("nobody has begun to work");
        self.latest.clone().ok_or_else(nobody)
    }

    /// Takes what the pods say for a while.
    pub(super) async fn watch(&mut self, time: Duration) -> Result<(), Failure> {
        let deadline = BootClock.now() + time;
        while self.next(deadline).await?.is_some() {}
        Ok(())
    }

    /// All that was told, for programs.
    pub(super) fn events(&self) -> Vec<Value> {
        self.events.clone()
    }

    /// Ends every pod, and waits for it.
    pub(super) async fn clear(&mut self) {
        self.view.end();
        for pod in &mut self.pods {
            let _ = pod.process.kill().await;
        }
    }

    async fn next(&mut self, deadline: Moment) -> Result<Option<Said>, Failure> {
        loop {
            let tick = deadline.min(BootClock.now() + self.view.tick());
            tokio::select! {
                biased;
                () = self.ending.told() => {
                    let text = "the demo was told to end before it had shown everything".to_owned();
                    return Err(Failure { text, code: code::NOTHING });
                }
                Some(said) = self.inbox.recv() => {
                    self.heard(&said)?;
                    return Ok(Some(said));
                }
                () = BootClock.sleep_until(tick) => {
                    self.view.draw()?;
                    if BootClock.now() >= deadline {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn heard(&mut self, said: &Said) -> Result<(), Failure> {
        let is_taken = self.check.takes(said);
        if said.what == What::Works {
            self.latest = Some(said.clone());
        }
        let (state, what) = match said.what {
            What::Waits => (Some(State::Waits), "waits for the lease"),
            What::Works => (Some(State::Works), "has the lease and works"),
            What::Dropped => (Some(State::Waits), "had its work dropped: its lease was over"),
            What::Ended => (Some(State::Ended), "has ended its work and released the lease"),
            What::Writes if !is_taken => (None, "writes too late, and is refused: a larger token was seen"),
            What::Writes | What::Steps | What::Renewed => return Ok(()),
        };
        let token = Some(said.token).filter(|token| *token != 0);
        self.tell(said.at, said.pod, state, what, token)
    }

    fn tell(
        &mut self,
        at: Moment,
        pod: usize,
        state: Option<State>,
        what: &str,
        token: Option<i64>,
    ) -> Result<(), Failure> {
        let millis = u64::try_from(at.since(self.start).as_millis()).unwrap_or(u64::MAX);
        self.events
            .push(json!({ "at_ms": millis, "pod": name(pod), "what": what, "token": token }));
        let shown = token.map_or(String::new(), |token| format!(", token {token}"));
        let line = format!(
            "{:>3}.{:03} s  {}  {what}{shown}",
            millis / 1_000,
            millis % 1_000,
            name(pod)
        );
        self.view.tell(&line, pod, at, state)
    }
}

//! One program of `bench/` at work, and the gates it waits at.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::run::shown;

/// What came of a piece of work.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Outcome {
    /// How often it was done.
    pub(super) operations: u64,
    pub(super) seconds: f64,
    /// User and system time of the client.
    pub(super) cpu_seconds: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) max_us: f64,
    pub(super) more: BTreeMap<String, f64>,
}

impl Outcome {
    /// Operations per second.
    pub(super) fn rate(&self) -> f64 {
        self.count() / self.seconds
    }

    /// Client CPU of one operation, in microseconds.
    pub(super) fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.count()
    }

    pub(super) fn count(&self) -> f64 {
        self.operations as f64
    }
}

/// A program at work. It does not outlive this.
pub(super) struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    limit: Duration,
}

impl Process {
    /// Starts it. It must reach each of its gates within `limit` of the one before.
    pub(super) fn start(command: &mut Command, limit: Duration) -> anyhow::Result<Self> {
        let name = shown(command);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start {name}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("its output is a pipe")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            name,
            child,
            input,
            lines,
            limit,
        })
    }

    /// Waits until it stands at the gate where what counts begins.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        self.reach("begin")
    }

    /// Waits until it stands at the gate where what counts has ended.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        self.reach("end")
    }

    /// Lets it pass.
    pub(super) fn go(&mut self) -> anyhow::Result<()> {
        let input = self.input.as_mut().context("its input is a pipe")?;
        writeln!(input).with_context(|| format!("{} has ended", self.name))?;
        Ok(input.flush()?)
    }

    /// What it says at its end.
    pub(super) fn outcome<T: DeserializeOwned>(mut self) -> anyhow::Result<T> {
        let line = self.line()?;
        let value = parsed(&line)?;
        ensure!(self.child.wait()?.success(), "{} failed", self.name);
        Ok(value)
    }

    fn reach(&mut self, gate: &str) -> anyhow::Result<()> {
        let line = self.line()?;
        if line == gate {
            return Ok(());
        }
        parsed::<serde_json::Value>(&line)?;
        bail!("{} says {line}, not {gate}", self.name)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let seconds = self.limit.as_secs();
        self.lines
            .recv_timeout(self.limit)
            .with_context(|| format!("{} ended, or said nothing for {seconds} s", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From gate to gate, nobody looking.
pub(super) fn work(command: &mut Command, limit: Duration) -> anyhow::Result<Outcome> {
    watched(command, limit, || Ok(())).map(|(outcome, (), ())| outcome)
}

/// As [`work`], with a look at each gate.
pub(super) fn watched<T>(
    command: &mut Command,
    limit: Duration,
    mut look: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<(Outcome, T, T)> {
    let mut process = Process::start(command, limit)?;
    process.begin()?;
    let before = look()?;
    process.go()?;
    process.end()?;
    let after = look()?;
    process.go()?;
    Ok((process.outcome()?, before, after))
}

/// A program that only has something to say at its end.
pub(super) fn said<T: DeserializeOwned>(command: &mut Command, limit: Duration) -> anyhow::Result<T> {
    Process::start(command, limit)?.outcome()
}

fn parsed<T: DeserializeOwned>(line: &str) -> anyhow::Result<T> {
    #[derive(Deserialize)]
    struct Failed {
        error: String,
    }
    if let Ok(Failed { error }) = serde_json::from_str(line) {
        bail!("{error}");
    }
    serde_json::from_str(line).with_context(|| format!("it said {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const OUTCOME: &str =
        r#"{"operations":4,"seconds":2.0,"cpu_seconds":0.002,"p50_us":1,"p99_us":2,"max_us":3,"more":{}}"#;

    #[test]
    fn both_gates_are_passed_and_looked_at() {
        let script = format!("echo begin; read a; echo end; read a; echo '{OUTCOME}'");
        let mut looks = 0;
        let look = || {
            looks += 1;
            Ok(looks)
        };
        let (outcome, before, after) = watched(&mut shell(&script), LIMIT, look).unwrap();
        assert_eq!((before, after), (1, 2));
        assert!((outcome.rate() - 2.0).abs() < 1e-9 && (outcome.cpu_us() - 500.0).abs() < 1e-9);
    }

    #[test]
    fn what_went_wrong_is_told_at_whatever_gate() {
        for script in [
            r#"echo '{"error":"no table"}'; exit 1"#,
            r#"echo begin; read a; echo '{"error":"no table"}'; exit 1"#,
            r#"echo begin; read a; echo end; read a; echo '{"error":"no table"}'; exit 1"#,
        ] {
            let error = work(&mut shell(script), LIMIT).unwrap_err();
            assert_eq!(error.to_string(), "no table", "{script}");
        }
    }

    #[test]
    fn who_says_nothing_is_given_up() {
        let error = work(&mut shell("sleep 20"), Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("said nothing"), "{error}");
    }
}

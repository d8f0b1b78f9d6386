//! [`conditions`]: machine, versions and durability, without which a figure says nothing.

use std::fs::{self, File};
use std::io::Write;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;

use super::built::Built;
use super::series::Series;
use super::stage::Stage;
use crate::run::{self, Stopwatch, root};

/// More than this on average, in processes that want to run, and the figures are no figures.
const BUSY: f64 = 0.7;

/// Under which conditions it was measured.
pub(super) struct Conditions {
    pub(super) lines: Vec<String>,
    /// The machine had other work.
    pub(super) busy: bool,
}

/// Before the first measurement, with the load average from the end of the [rest].
pub(super) fn conditions(stage: &Stage, load: f64) -> anyhow::Result<Conditions> {
    let said = |program: &str, args: &[&str]| -> anyhow::Result<String> {
        let output = run::output(Command::new(program).args(args).current_dir(root()))?;
        Ok(String::from_utf8_lossy(&output).trim().to_owned())
    };
    let cpus = fs::read_to_string("/proc/cpuinfo")?;
    let model = field(&cpus, "model name").unwrap_or("unknown");
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let memory = fs::read_to_string("/proc/meminfo")?;
    let memory = field(&memory, "MemTotal").unwrap_or("unknown");
    let mut lines = vec![
        format!("Date: {}", said("date", &["+%F"])?),
        format!(
            "Commit: {}",
            said("git", &["describe", "--always", "--dirty", "--exclude", "*"])?
        ),
        format!("Processor: {count} of {model}"),
        format!("Memory: {memory}"),
        format!("Kernel: {}, {}", said("uname", &["-sr"])?, autogroups()),
        format!("Compiler: {}", said("rustc", &["--version"])?),
        format!("Load average at the beginning: {load:.2}"),
        format!(
            "One write of 8 KiB that reaches the disk, where the data are: {} µs",
            flush()?.shown(0)
        ),
    ];
    for engine in &stage.engines {
        lines.push(format!("{} {}", engine.kind.name(), engine.facts()?));
    }
    lines.extend(stage.missing.iter().cloned());
    for (name, version) in Built::versions()? {
        lines.push(format!("{name} {version}"));
    }
    Ok(Conditions {
        lines,
        busy: load > BUSY,
    })
}

/// Whether the kernel shares the processors among sessions (sched(7)) instead of threads. Each process of PostgreSQL begins a session.
fn autogroups() -> String {
    let set = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    let set = set.map_or_else(|_| "not known here".to_owned(), |set| set.trim().to_owned());
    format!("kernel.sched_autogroup_enabled = {set}")
}

/// Waits until the machine is quiet, as it is not after a build, but not for longer than that. Answers its load average then.
pub(super) fn rest(longest: Duration) -> anyhow::Result<f64> {
    let watch = Stopwatch::start();
    loop {
        let load = load()?;
        if load <= BUSY || watch.elapsed() >= longest {
            return Ok(load);
        }
        sleep(Duration::from_secs(1));
    }
}

/// The mean number of processes that wanted to run in the last minute.
fn load() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().context("a load average")?.parse()?)
}

/// How long a small durable write takes, in microseconds.
fn flush() -> anyhow::Result<Series> {
    let folder = tempfile::tempdir()?;
    let mut file = File::create(folder.path().join("flushed"))?;
    let mut times = Series::default();
    for _ in 0..200 {
        let watch = Stopwatch::start();
        file.write_all(&[0x5A; 8_192])?;
        file.sync_data()?;
        times.add(watch.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim())
}

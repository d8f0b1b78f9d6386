//! Plays worlds, some at once, each in namespaces of its own.

use std::collections::VecDeque;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, bail};
use serde_json::Value;

use super::parts::Parts;
use super::{Engine, Mutant, word};

/// How many faults show that a broken rule is noticed.
const BROKEN_FAULTS: u64 = 12;

/// What a world is to do.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) engine: Engine,
    seed: u64,
    faults: Option<u64>,
    seconds: Option<u64>,
    mutant: Option<Mutant>,
}

impl Order {
    pub(super) fn of(engine: Engine, seed: u64, faults: Option<u64>, seconds: Option<u64>) -> Self {
        Self {
            engine,
            seed,
            faults,
            seconds,
            mutant: None,
        }
    }

    /// A world with a broken rule, under a few faults of a kind that it can't bear.
    pub(super) fn broken(engine: Engine, seed: u64, mutant: Mutant) -> Self {
        Self {
            mutant: Some(mutant),
            ..Self::of(engine, seed, Some(BROKEN_FAULTS), None)
        }
    }

    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec![
            "--engine".to_owned(),
            word(&self.engine),
            "--seed".to_owned(),
            self.seed.to_string(),
        ];
        for (flag, number) in [("--faults", self.faults), ("--seconds", self.seconds)] {
            words.extend(
                number
                    .into_iter()
                    .flat_map(|number| [flag.to_owned(), number.to_string()]),
            );
        }
        if let Some(mutant) = &self.mutant {
            // A pod that hears nothing for longer than a ttl has to stop by itself.
            let words_of_it = ["--kind", "pod-cut-off", "--kind", "pod-deaf", "--mutant"].map(str::to_owned);
            words.extend(words_of_it);
            words.push(word(mutant));
        }
        words
    }

    /// Its folder's name.
    fn name(&self) -> String {
        let mutant = self
            .mutant
            .as_ref()
            .map_or_else(String::new, |mutant| format!("-{}", word(mutant)));
        format!("{}-{}{mutant}", word(&self.engine), self.seed)
    }
}

/// What each world answered, in the order of the orders.
pub(super) fn play(parts: &Parts, orders: &[Order], at_once: usize) -> Vec<(Engine, anyhow::Result<Value>)> {
    let todo: Mutex<VecDeque<usize>> = Mutex::new((0..orders.len()).collect());
    let done = Mutex::new(Vec::new());
    let next = || todo.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(index) = next() {
                    let seen = one(parts, &orders[index]);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, seen));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter()
        .map(|(index, seen)| (orders[index].engine, seen))
        .collect()
}

/// One world. Its processes are all in one namespace, and end with the first of them, which ends when we do.
fn one(parts: &Parts, order: &Order) -> anyhow::Result<Value> {
    let out = parts.folder.join(order.name());
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    // Before whatever else this machine does: a process that waits for its turn for longer than the drift is a frozen one.
    let mut command = Command::new("chrt");
    command.args([
        "--rr",
        "1",
        "unshare",
        "--fork",
        "--pid",
        "--kill-child",
        "--mount-proc",
        "--net",
        "--mount",
        "--ipc",
    ]);
    // The first process of the namespace collects the dead of all others.
    command
        .args(["sh", "-c", "\"$@\"; exit $?", "world"])
        .arg(&parts.program)
        .arg("world");
    command.args(order.words()).arg("--out").arg(&out);
    if let Some(root) = parts.root(order.engine) {
        command.arg("--root").arg(root);
    }
    command
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut world = command.spawn().context("cannot start a world")?;
    // Held until it has ended: its end tells the world of ours.
    let _input = world.stdin.take();
    let mut said = String::new();
    world
        .stdout
        .take()
        .context("the output of a world")?
        .read_to_string(&mut said)?;
    let status = world.wait()?;
    if !status.success() {
        bail!("the world ended with {status}: see above, and {}", out.display());
    }
    serde_json::from_str(&said).with_context(|| format!("the world said {said:?}"))
}

//! A pod as the world has it: its place on the network, its process, and what it wrote down.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use nix::sys::signal::Signal;

use crate::engine::{Engine, own};
use crate::line::{Did, Line, Reader};
use crate::net::Node;
use crate::pod::{Mutant, URL};
use crate::processes;

/// One pod. Its place stays when its process is killed.
pub(crate) struct Pod {
    /// Counted from 0.
    pub(crate) number: usize,
    pub(crate) node: Node,
    child: Option<Child>,
    book: PathBuf,
    reader: Reader,
    lines: Vec<Line>,
}

impl Pod {
    pub(super) fn new(number: usize, node: Node, out: &Path) -> Self {
        let book = out.join(format!("pod-{}.log", number + 1));
        Self {
            number,
            node,
            child: None,
            reader: Reader::new(book.clone()),
            book,
            lines: Vec::new(),
        }
    }

    pub(super) fn start(
        &mut self,
        engine: Engine,
        url: &str,
        mutant: Option<Mutant>,
        out: &Path,
    ) -> anyhow::Result<()> {
        use clap::ValueEnum;
        let value = |value: clap::builder::PossibleValue| value.get_name().to_owned();
        let errors = out.join(format!("pod-{}.err", self.number + 1));
        let errors = OpenOptions::new().create(true).append(true).open(errors)?;
        let mut command = self.node.command(std::env::current_exe()?);
        command
            .arg("pod")
            .env(URL, url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        let engine = engine.to_possible_value().map(value).unwrap_or_default();
        command.args(["--engine", &engine, "--number", &self.number.to_string(), "--book"]);
        command.arg(&self.book);
        if let Some(mutant) = mutant.and_then(|mutant| mutant.to_possible_value()) {
            command.args(["--mutant", &value(mutant)]);
        }
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// The process that is dead now.
    pub(super) fn kill(&mut self) -> anyhow::Result<Option<u32>> {
        let Some(mut child) = self.child.take() else {
            return Ok(None);
        };
        child.kill()?;
        child.wait()?;
        Ok(Some(child.id()))
    }

    pub(super) fn runs(&mut self) -> bool {
        self.child
            .as_mut()
            .is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        match &self.child {
            Some(child) => processes::send(i32::try_from(child.id())?, signal),
            None => Ok(()),
        }
    }

    /// When it began to work under its own lease for the first time after this.
    pub(super) fn first_own_after(&mut self, at: u64) -> anyhow::Result<Option<u64>> {
        self.lines.extend(self.reader.read()?);
        let own = own(self.number);
        let enters = self
            .lines
            .iter()
            .rev()
            .filter(|line| line.name == own)
            .filter_map(|line| match line.did {
                Did::Enter { at } => Some(at),
                _ => None,
            });
        // From the last one back to the first that is late enough.
        Ok(enters.take_while(|enter| *enter > at).last())
    }

    /// All that it ever wrote.
    pub(super) fn all_lines(&mut self) -> anyhow::Result<Vec<Line>> {
        self.lines.extend(self.reader.read()?);
        Ok(std::mem::take(&mut self.lines))
    }
}

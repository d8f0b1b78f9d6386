//! Acquire and release, nobody else wanting it, at several numbers of connections; and the client's CPU for it.

use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::contender::{Contender, Keeps, PGBENCH, contenders, words};
use super::engine::{Engine, Kind, Place};
use super::process::Outcome;
use super::section::{Good, Section, Table};
use super::series::Series;
use super::stage::{Stage, in_turn, verdict};
use crate::machine::Machine;
use crate::measure::{pgbench_pairs, pgbench_script};
use crate::report::note;

const COLUMNS: [&str; 7] = [
    "connections",
    "contender",
    "keeps",
    "pairs per second",
    "lease : it",
    "client CPU, µs a pair",
    "p50 / p99, µs",
];

/// What one of them has shown at one number of connections.
#[derive(Default)]
struct Shown {
    /// It has failed, and runs no more: the rounds of all others stay comparable.
    failed: bool,
    rates: Series,
    cpu: Series,
    p50: Series,
    p99: Series,
}

/// Who runs.
enum Runner {
    Contender((Contender, Place)),
    Pgbench(Pgbench),
}

impl Runner {
    fn label(&self) -> (&'static str, Keeps) {
        match self {
            Self::Contender((contender, _)) => (contender.label, contender.keeps),
            Self::Pgbench(_) => (PGBENCH, Keeps::Floor),
        }
    }
}

/// The section.
pub(super) fn measure(stage: &Stage) -> anyhow::Result<Section> {
    let mut section = Section {
        text: "Each client takes a lease of its own and releases it, again and again, through the public API. A pair is one acquire and \
               one release. `lease, its Repo` is the backend without the keeper, so without tenure, renewal or events; \
               `behind a thread` is the same with the way to another thread and back, as the keeper has one. On SQLite, `lease` has one \
               thread with one connection for all clients of a process; the others have a connection each. `lease : it` is over 1 where this \
               project is faster. pgbench has no latency of pairs to tell here, and its CPU includes its start."
            .into(),
        ..Section::default()
    };
    for engine in &stage.engines {
        on(stage, engine, &mut section)?;
    }
    Ok(section)
}

fn on(stage: &Stage, engine: &Engine, section: &mut Section) -> anyhow::Result<()> {
    let kind = engine.kind;
    let mut runners = Vec::new();
    if kind == Kind::Postgres {
        match Pgbench::new(stage, engine) {
            Ok(pgbench) => runners.push(Runner::Pgbench(pgbench)),
            Err(error) => section.left_out.push(format!("{}: {PGBENCH}: {error:#}", kind.name())),
        }
    }
    // What the keeper costs is the distance between the three.
    let all = [contenders(kind), vec![Contender::hop(kind), Contender::repo(kind)]].concat();
    let places = stage.places(engine, all, &mut section.left_out);
    runners.extend(places.into_iter().map(Runner::Contender));
    let mut table = Table::new(kind.name(), &COLUMNS);
    for &connections in stage.plan.connections {
        let mut shown: Vec<Shown> = runners.iter().map(|_| Shown::default()).collect();
        for round in 0..stage.plan.rounds {
            for (at, runner) in in_turn(&runners, round) {
                if shown[at].failed {
                    continue;
                }
                match run(stage, runner, connections) {
                    Ok(outcome) => shown[at].add(&outcome),
                    Err(error) => {
                        let (label, _) = runner.label();
                        let line = format!("{}: {label}, {connections} connections: {error:#}", kind.name());
                        section.left_out.push(line);
                        shown[at] = Shown {
                            failed: true,
                            ..Shown::default()
                        };
                    }
                }
            }
        }
        let us = runners.iter().position(|runner| runner.label().1 == Keeps::Us);
        let us = us.context("this project takes part")?;
        for (at, (runner, is)) in runners.iter().zip(&shown).enumerate() {
            let (label, keeps) = runner.label();
            let ratio = if at == us {
                Series::default()
            } else {
                shown[us].rates.over(&is.rates)
            };
            let latency = if is.p50.median() > Some(0.0) {
                format!("{} / {}", is.p50.shown(0), is.p99.shown(0))
            } else {
                "–".into()
            };
            table.row([
                connections.to_string(),
                label.into(),
                keeps.shown().into(),
                is.rates.shown(0),
                ratio.shown(2),
                is.cpu.shown(1),
                latency,
            ]);
        }
        aims(section, kind, connections, &runners, &shown, us);
    }
    section.tables.push(table);
    Ok(())
}

/// What the ratios should be.
fn aims(section: &mut Section, kind: Kind, connections: usize, runners: &[Runner], shown: &[Shown], us: usize) {
    let ours = &shown[us];
    for (runner, is) in runners.iter().zip(shown) {
        let (label, keeps) = runner.label();
        if keeps != Keeps::Floor {
            continue;
        }
        let against = format!("{label}: {}", kind.pair());
        if connections > 1 {
            let what = format!("acquire + release, {connections} connections");
            section.verdicts.push(verdict(
                kind,
                what,
                &against,
                ours.rates.over(&is.rates),
                (Good::AtLeast, 0.9),
            ));
        }
        if connections == 8 && label != PGBENCH {
            let what = "client CPU per acquire + release, 8 connections";
            section.verdicts.push(verdict(
                kind,
                what,
                &against,
                ours.cpu.over(&is.cpu),
                (Good::AtMost, 1.5),
            ));
        }
    }
    // The fastest of those that keep a row.
    let rows = runners
        .iter()
        .zip(shown)
        .filter(|(runner, is)| runner.label().1 == Keeps::Row && !is.rates.is_empty());
    let best = rows.max_by(|(_, one), (_, other)| {
        let rate = |is: &Shown| is.rates.median().unwrap_or_default();
        rate(one).total_cmp(&rate(other))
    });
    if let (8, Some((best, is))) = (connections, best) {
        let against = format!("{}, the fastest other that keeps a row", best.label().0);
        let ratio = ours.rates.over(&is.rates);
        section.verdicts.push(verdict(
            kind,
            "acquire + release, 8 connections, over another library",
            against,
            ratio,
            (Good::AtLeast, 2.0),
        ));
    }
}

impl Shown {
    fn add(&mut self, outcome: &Outcome) {
        self.rates.add(outcome.rate());
        self.cpu.add(outcome.cpu_us());
        self.p50.add(outcome.p50_us);
        self.p99.add(outcome.p99_us);
    }
}

fn run(stage: &Stage, runner: &Runner, connections: usize) -> anyhow::Result<Outcome> {
    let seconds = stage.plan.seconds;
    match runner {
        Runner::Pgbench(pgbench) => pgbench.run(connections, seconds),
        Runner::Contender(at) => stage.work(
            at,
            seconds,
            &words!["pairs", "--clients", connections, "--seconds", seconds],
        ),
    }
}

/// The program with our statements.
struct Pgbench {
    program: std::path::PathBuf,
    place: Place,
    folder: tempfile::TempDir,
}

impl Pgbench {
    fn new(stage: &Stage, engine: &Engine) -> anyhow::Result<Self> {
        let programs = Machine::look().postgres;
        let program = programs
            .context("there are no programs of PostgreSQL here")?
            .join("pgbench");
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("pairs.sql"), pgbench_script()?)?;
        let place = stage.place(engine, &Contender::us(engine.kind))?;
        Ok(Self { program, place, folder })
    }

    /// It counts whole seconds.
    fn run(&self, connections: usize, seconds: f64) -> anyhow::Result<Outcome> {
        let seconds = seconds.ceil() as u64;
        let script = self.folder.path().join("pairs.sql");
        let before = children()?;
        let rate = pgbench_pairs(&self.program, &script, &self.place.url(), connections, seconds)?;
        let cpu_seconds = children()? - before;
        note(format_args!("{connections} connections, {PGBENCH}: {rate:.0} pairs/s"));
        Ok(Outcome {
            operations: (rate * seconds as f64) as u64,
            seconds: seconds as f64,
            cpu_seconds,
            ..Outcome::default()
        })
    }
}

/// What ended children have used of the CPUs, in seconds.
fn children() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(micros as f64 / 1e6)
}

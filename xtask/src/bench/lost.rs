//! The lost tick: what it costs to hear that another pod has the lease.

use super::contender::{Contender, Keeps, contenders, words};
use super::engine::{Counted, Engine, Kind, Place};
use super::process::{self, Process};
use super::section::{Good, Section, Table};
use super::series::{Series, number};
use super::stage::{Stage, in_turn, verdict, without};
use crate::report::note;

/// Pods that try as fast as they can, each with a connection.
const PODS: usize = 8;

const COLUMNS: [&str; 10] = [
    "contender",
    "keeps",
    "lost ticks per second",
    "client CPU, µs each",
    "statements each",
    "log bytes in all",
    "transaction ids in all",
    "row locks written in all",
    "slowest, ms",
    "without an answer",
];

/// The section.
pub(super) fn measure(stage: &Stage) -> anyhow::Result<Section> {
    let mut section = Section {
        text: format!(
            "One pod holds a lease; {PODS} others, with a connection each, try to take it as fast as they can. What the server counts \
             meanwhile is the sum over all of a run's lost ticks, by `pg_stat_statements` and `pg_walinspect`, by `Com_stmt_execute` and \
             `Innodb_os_log_written`, or by the length of SQLite's log. Then the same while another session has the row locked, or on \
             SQLite the file: who loses must not notice."
        ),
        ..Section::default()
    };
    for engine in &stage.engines {
        on(stage, engine, &mut section)?;
    }
    Ok(section)
}

#[derive(Default)]
struct Shown {
    failed: bool,
    rates: Series,
    cpu: Series,
    statements: Series,
    log_bytes: Series,
    transactions: Series,
    row_locks: Series,
    slowest_ms: Series,
    errors: Series,
}

fn on(stage: &Stage, engine: &Engine, section: &mut Section) -> anyhow::Result<()> {
    let kind = engine.kind;
    let places = stage.places(engine, contenders(kind), &mut section.left_out);
    let mut shown: Vec<Shown> = places.iter().map(|_| Shown::default()).collect();
    for round in 0..stage.plan.rounds {
        for (at, place) in in_turn(&places, round) {
            if shown[at].failed {
                continue;
            }
            if let Err(error) = shown[at].run(stage, engine, place) {
                section.left_out.push(without(kind, &place.0, &error));
                shown[at] = Shown {
                    failed: true,
                    ..Shown::default()
                };
            }
        }
    }
    let mut table = Table::new(kind.name(), &COLUMNS);
    for ((contender, place), is) in places.iter().zip(&shown) {
        table.row([
            contender.label.into(),
            contender.keeps.shown().into(),
            is.rates.shown(0),
            is.cpu.shown(1),
            is.statements.shown(2),
            is.log_bytes.shown(0),
            is.transactions.shown(0),
            is.row_locks.shown(0),
            is.slowest_ms.shown(0),
            is.errors.shown(0),
        ]);
        if contender.keeps == Keeps::Us {
            is.aims(section, kind);
            let what = "slowest lost tick beside a locked row, ms";
            let slowest = beside_a_lock(stage, kind, &(*contender, place));
            let slowest = slowest.map_err(|error| section.left_out.push(without(kind, contender, &error)));
            section.verdicts.push(verdict(
                kind,
                what,
                "no wait for the lock",
                slowest.into_iter().collect(),
                (Good::AtMost, 1_000.0),
            ));
        }
    }
    section.tables.push(table);
    Ok(())
}

impl Shown {
    fn run(&mut self, stage: &Stage, engine: &Engine, at: &(Contender, Place)) -> anyhow::Result<()> {
        let seconds = stage.plan.seconds;
        let work = words!["lose", "--pods", PODS, "--seconds", seconds];
        let mut command = stage.command(at, &work)?;
        let look = || engine.look(&at.1);
        let (outcome, before, after) = process::watched(&mut command, stage.plan.limit(seconds), look)?;
        let Counted {
            statements,
            log_bytes,
            transactions,
            row_locks,
        } = engine.between(&before, &after)?;
        note(format_args!(
            "{}: {} lost ticks/s",
            at.0.label,
            number(outcome.rate(), 0)
        ));
        self.rates.add(outcome.rate());
        self.cpu.add(outcome.cpu_us());
        self.slowest_ms.add(outcome.max_us / 1_000.0);
        for (series, value) in [
            (&mut self.statements, statements.map(|all| all / outcome.count())),
            (&mut self.log_bytes, log_bytes),
            (&mut self.transactions, transactions),
            (&mut self.row_locks, row_locks),
            (&mut self.errors, outcome.more.get("errors").copied()),
        ] {
            value.into_iter().for_each(|value| series.add(value));
        }
        Ok(())
    }

    /// Only where such a thing is counted: the highest of all runs must do.
    fn aims(&self, section: &mut Section, kind: Kind) {
        let server = "by the server's counters";
        for (what, is, against, aim) in [
            ("statements of a lost tick", &self.statements, server, 1.0),
            ("log bytes of all lost ticks of a run", &self.log_bytes, server, 0.0),
            ("row locks of all lost ticks of a run", &self.row_locks, server, 0.0),
            (
                "lost ticks of a run without an answer",
                &self.errors,
                "as the client saw",
                0.0,
            ),
        ] {
            if !is.is_empty() {
                let most: Series = is.most().into_iter().collect();
                section
                    .verdicts
                    .push(verdict(kind, what, against, most, (Good::AtMost, aim)));
            }
        }
    }
}

/// The slowest lost tick while another session has the row's lock, in milliseconds.
fn beside_a_lock(stage: &Stage, kind: Kind, at: &(Contender, &Place)) -> anyhow::Result<f64> {
    let (contender, place) = at;
    let seconds = stage.plan.seconds;
    let limit = stage.plan.limit(seconds);
    let work = words!["lose", "--pods", PODS, "--seconds", seconds];
    let mut losers = Process::start(&mut contender.command(&stage.built, place, &work)?, limit)?;
    losers.begin()?;
    let mut command = std::process::Command::new(stage.built.tool("bench-block"));
    let mut block = Process::start(command.arg(kind.word()).env("BENCH_URL", place.url()), limit)?;
    block.begin()?;
    block.go()?;
    // It has the lock there.
    block.end()?;
    losers.go()?;
    losers.end()?;
    block.go()?;
    block.outcome::<Option<()>>()?;
    losers.go()?;
    Ok(losers.outcome::<process::Outcome>()?.max_us / 1_000.0)
}

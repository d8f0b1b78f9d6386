//! The winner beside 63 pods that try ten times a second each.

use super::contender::{Contender, words};
use super::engine::{Engine, Place};
use super::process::{Outcome, Process};
use super::section::{Good, Section, Table};
use super::series::Series;
use super::stage::{Stage, verdict, without};
use crate::report::note;

const LOSERS: usize = 63;
const EVERY_MS: u64 = 100;

/// The section.
pub(super) fn measure(stage: &Stage) -> anyhow::Result<Section> {
    let mut section = Section {
        text: format!(
            "One pod holds a lease and renews it as fast as one connection can, while {LOSERS} others, with a connection each and all in \
             another process, do nothing, and while each tries to take it every {EVERY_MS} ms. Pods are elsewhere as a rule; here what \
             theirs takes of the processors is missing to the winner. So it is measured twice: with losers that are a whole `Lease` \
             each, two threads a pod, and with losers that are a backend each, two threads in all, which send the same statements."
        ),
        ..Section::default()
    };
    let columns = [
        "engine",
        "losers",
        "renewals per second, losers idle",
        "losers trying",
        "trying : idle",
        "winner's p99 trying, µs",
        "losers' p50 / p99, µs",
    ];
    let mut table = Table::new("", &columns);
    for engine in &stage.engines {
        for losers in [Contender::us(engine.kind), Contender::repo(engine.kind)] {
            beside(stage, engine, &losers, &mut table, &mut section);
        }
    }
    section.tables.push(table);
    Ok(section)
}

fn beside(stage: &Stage, engine: &Engine, losers: &Contender, table: &mut Table, section: &mut Section) {
    let kind = engine.kind;
    let mut shown = Shown::default();
    let ran = stage.place(engine, losers).and_then(|place| {
        (0..stage.plan.rounds).try_for_each(|round| shown.round(stage, engine, &place, losers, round))
    });
    if let Err(error) = ran {
        section.left_out.push(without(kind, losers, &error));
        return;
    }
    let ratio = shown.trying.over(&shown.idle);
    table.row([
        kind.name().into(),
        losers.label.into(),
        shown.idle.shown(0),
        shown.trying.shown(0),
        ratio.shown(2),
        shown.p99.shown(0),
        format!("{} / {}", shown.lost_p50.shown(0), shown.lost_p99.shown(0)),
    ]);
    section.verdicts.push(verdict(
        kind,
        format!(
            "the winner's throughput beside {LOSERS} losers that try ten times a second each ({})",
            losers.label
        ),
        "the same losers idle: `Renew`",
        ratio,
        (Good::AtLeast, 0.9),
    ));
}

#[derive(Default)]
struct Shown {
    idle: Series,
    trying: Series,
    p99: Series,
    lost_p50: Series,
    lost_p99: Series,
}

impl Shown {
    /// Idle and trying, in an order that changes.
    fn round(
        &mut self,
        stage: &Stage,
        engine: &Engine,
        place: &Place,
        losers: &Contender,
        round: u32,
    ) -> anyhow::Result<()> {
        let seconds = stage.plan.seconds;
        let limit = stage.plan.limit(seconds * 3.0);
        let work = words![
            "lose",
            "--pods",
            LOSERS,
            // A little longer than the winner's run.
            "--seconds",
            seconds + 0.3,
            "--every-ms",
            EVERY_MS,
            "--held-elsewhere"
        ];
        let label = losers.label;
        let mut losers = Process::start(&mut losers.command(&stage.built, place, &work)?, limit)?;
        losers.begin()?;
        let winner = || Winner::start(stage, engine, place);
        let idle_first = round.is_multiple_of(2);
        let mut idle = None;
        if idle_first {
            idle = Some(winner()?.run()?);
        }
        let holder = winner()?;
        losers.go()?;
        let trying = holder.run_until(|| losers.end())?;
        if !idle_first {
            idle = Some(winner()?.run()?);
        }
        losers.go()?;
        let lost: Outcome = losers.outcome()?;
        let idle = idle.map_or(0.0, |outcome| outcome.rate());
        note(format_args!(
            "{}: the winner renews {idle:.0}/s beside idle losers, {:.0}/s beside {:.0} lost ticks/s of {label}",
            engine.kind.name(),
            trying.rate(),
            lost.rate()
        ));
        self.idle.add(idle);
        self.trying.add(trying.rate());
        self.p99.add(trying.p99_us);
        self.lost_p50.add(lost.p50_us);
        self.lost_p99.add(lost.p99_us);
        Ok(())
    }
}

/// The pod that has the lease.
struct Winner(Process);

impl Winner {
    /// It has it when this returns.
    fn start(stage: &Stage, engine: &Engine, place: &Place) -> anyhow::Result<Self> {
        let seconds = stage.plan.seconds;
        let work = words!["renew", "--clients", 1, "--seconds", seconds, "--name", "held"];
        let mut command = Contender::repo(engine.kind).command(&stage.built, place, &work)?;
        let mut process = Process::start(&mut command, stage.plan.limit(seconds))?;
        process.begin()?;
        Ok(Self(process))
    }

    fn run(self) -> anyhow::Result<Outcome> {
        self.run_until(|| Ok(()))
    }

    /// It keeps the lease until then.
    fn run_until(mut self, then: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Outcome> {
        self.0.go()?;
        self.0.end()?;
        then()?;
        self.0.go()?;
        self.0.outcome()
    }
}

//! What it costs to hold many leases in one process.

use super::contender::{Contender, Keeps, contenders, words};
use super::engine::{Engine, Kind};
use super::process;
use super::section::{Good, Section, Table};
use super::series::{Series, number};
use super::stage::{Stage, verdict, without};
use crate::report::note;

const COLUMNS: [&str; 6] = [
    "leases",
    "contender",
    "statements a round",
    "of one core, %",
    "CPU a lease and round, µs",
    "memory a lease, bytes",
];

/// The section.
pub(super) fn measure(stage: &Stage) -> anyhow::Result<Section> {
    let (ttl, rounds) = (stage.plan.held_ttl, stage.plan.held_rounds);
    let mut section = Section {
        text: format!(
            "One process holds so many leases with a ttl of {} s and does nothing else, on four connections. A round is the time between two \
             renewals, a third of the ttl; {rounds} of them are looked at, after two that bring together what is due together, from halfway \
             between two renewals on.",
            ttl.as_secs_f64()
        ),
        ..Section::default()
    };
    for engine in &stage.engines {
        on(stage, engine, &mut section)?;
    }
    Ok(section)
}

/// What holding so many cost.
#[derive(Debug, Clone, Copy)]
struct Cost {
    statements: Option<f64>,
    /// Share of a core.
    core: f64,
    cpu_us: f64,
    bytes: f64,
}

fn on(stage: &Stage, engine: &Engine, section: &mut Section) -> anyhow::Result<()> {
    let kind = engine.kind;
    let mut table = Table::new(kind.name(), &COLUMNS);
    let mut ours = Vec::new();
    for contender in contenders(kind) {
        let why = match contender.keeps {
            Keeps::Us => None,
            Keeps::Row if contender.label != "distributed" => None,
            Keeps::Floor => continue,
            Keeps::Row => Some("it renews nothing"),
            Keeps::Session => Some("each lock keeps a connection busy: so many are not to be had"),
        };
        if let Some(why) = why {
            section
                .left_out
                .push(format!("{}: {}: {why}", kind.name(), contender.label));
            continue;
        }
        for &count in &stage.plan.held {
            match hold(stage, engine, contender, count) {
                Ok(cost) => {
                    table.row([
                        number(count as f64, 0),
                        contender.label.into(),
                        cost.statements.map_or("–".into(), |each| number(each, 1)),
                        number(cost.core * 100.0, 2),
                        number(cost.cpu_us, 1),
                        number(cost.bytes, 0),
                    ]);
                    if contender.keeps == Keeps::Us {
                        ours.push((count, cost));
                    }
                }
                Err(error) => section
                    .left_out
                    .push(format!("{count} leases: {}", without(kind, &contender, &error))),
            }
        }
    }
    section.tables.push(table);
    aims(section, kind, &ours);
    Ok(())
}

fn aims(section: &mut Section, kind: Kind, ours: &[(usize, Cost)]) {
    let (Some((least, first)), Some((most, last))) = (ours.first(), ours.last()) else {
        return;
    };
    let mut aim = |what: String, is: Option<f64>, aim: f64| {
        let is: Series = is.into_iter().collect();
        section.verdicts.push(verdict(kind, what, "", is, (Good::AtMost, aim)));
    };
    if kind != Kind::Sqlite {
        aim(format!("{most} leases held: statements a round"), last.statements, 10.0);
    }
    aim(
        format!("{most} leases held: of one core, %"),
        Some(last.core * 100.0),
        5.0,
    );
    aim(
        format!("{most} leases held: memory a lease, bytes"),
        Some(last.bytes),
        2_048.0,
    );
    // Not more than linear: the fixed cost is the greater part of what few leases cost.
    aim(
        format!("CPU a lease and round, {most} : {least} leases"),
        Some(last.cpu_us / first.cpu_us),
        1.0,
    );
}

fn hold(stage: &Stage, engine: &Engine, contender: Contender, count: usize) -> anyhow::Result<Cost> {
    let at = (contender, stage.place(engine, &contender)?);
    let round = stage.plan.held_ttl.as_secs_f64() / 3.0;
    let seconds = round * f64::from(stage.plan.held_rounds);
    let ttl = stage.plan.held_ttl.as_millis();
    let work = words!["--ttl-ms", ttl, "held", "--count", count, "--seconds", seconds];
    let mut command = stage.command(&at, &work)?;
    // Acquiring as many takes its time, and up to six rounds come before.
    let limit = stage.plan.limit(seconds + round * 6.0 + count as f64 / 50.0);
    let look = || engine.look(&at.1);
    let (outcome, before, after) = process::watched(&mut command, limit, look)?;
    let counted = engine.between(&before, &after)?;
    let rounds = outcome.seconds / round;
    let cost = Cost {
        statements: counted.statements.map(|all| all / rounds),
        core: outcome.cpu_seconds / outcome.seconds,
        cpu_us: outcome.cpu_seconds * 1e6 / outcome.count() / rounds,
        bytes: outcome.more.get("bytes_each").copied().unwrap_or(f64::NAN),
    };
    note(format_args!(
        "{}: {}, {count} leases: {cost:?}",
        engine.kind.name(),
        contender.label
    ));
    Ok(cost)
}

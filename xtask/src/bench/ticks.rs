//! 64 pods that tick on one row.

use super::contender::{Contender, Keeps, contenders, words};
use super::engine::{Engine, Kind, Place};
use super::process;
use super::section::{Section, Table};
use super::series::Series;
use super::stage::{Stage, without};
use crate::report::note;

const PODS: usize = 64;
const EVERY_MS: u64 = 100;
const WORK_MS: u64 = 5;

const COLUMNS: [&str; 11] = [
    "contender",
    "keeps",
    "won a second",
    "winner's p50, µs",
    "winner's p99, µs",
    "loser's p50, µs",
    "log bytes a win",
    "row locks a win",
    "dead rows at the end",
    "table, KiB",
    "errors",
];

/// The section.
pub(super) fn measure(stage: &Stage) -> anyhow::Result<Section> {
    let mut section = Section {
        text: format!(
            "{PODS} pods with a connection each, in one process, tick every {EVERY_MS} ms for {} s, spread over that time. Who gets the lease \
             works for {WORK_MS} ms and releases it. Latency is that of the call that takes it. Row locks are those that PostgreSQL writes \
             to its log for rows that are locked and not changed.",
            stage.plan.tick_seconds
        ),
        ..Section::default()
    };
    for engine in &stage.engines {
        on(stage, engine, &mut section);
    }
    Ok(section)
}

fn on(stage: &Stage, engine: &Engine, section: &mut Section) {
    let mut table = Table::new(engine.kind.name(), &COLUMNS);
    for contender in contenders(engine.kind) {
        if contender.keeps == Keeps::Floor {
            continue;
        }
        match rounds(stage, engine, contender) {
            Ok([won, p50, p99, lost, bytes, locks, dead, table_kib, errors]) => table.row([
                contender.label.into(),
                contender.keeps.shown().into(),
                won.shown(1),
                p50.shown(0),
                p99.shown(0),
                lost.shown(0),
                bytes.shown(0),
                locks.shown(2),
                dead.shown(0),
                table_kib.shown(0),
                errors.shown(0),
            ]),
            Err(error) => section.left_out.push(without(engine.kind, &contender, &error)),
        }
    }
    section.tables.push(table);
}

fn rounds(stage: &Stage, engine: &Engine, contender: Contender) -> anyhow::Result<[Series; 9]> {
    let mut all: [Series; 9] = Default::default();
    for _ in 0..stage.plan.tick_rounds {
        // Each begins with a small table.
        let at = (contender, stage.place(engine, &contender)?);
        let values = one(stage, engine, &at)?;
        for (series, value) in all.iter_mut().zip(values) {
            value.into_iter().for_each(|value| series.add(value));
        }
    }
    Ok(all)
}

fn one(stage: &Stage, engine: &Engine, at: &(Contender, Place)) -> anyhow::Result<[Option<f64>; 9]> {
    let seconds = stage.plan.tick_seconds;
    let work = words![
        "ticks",
        "--pods",
        PODS,
        "--seconds",
        seconds,
        "--every-ms",
        EVERY_MS,
        "--work-ms",
        WORK_MS
    ];
    let look = || engine.look(&at.1);
    let (outcome, before, after) = process::watched(&mut stage.command(at, &work)?, stage.plan.limit(seconds), look)?;
    let counted = engine.between(&before, &after)?;
    let won = outcome.count();
    note(format_args!(
        "{}: {}: {won} won, p99 {:.0} µs",
        engine.kind.name(),
        at.0.label,
        outcome.p99_us
    ));
    let (mut dead, mut table_kib) = (None, None);
    if engine.kind == Kind::Postgres {
        // A session adds up its counters a second after its last work.
        std::thread::sleep(std::time::Duration::from_millis(1_200));
        let sum = |what: &str| {
            at.1.number(&format!("SELECT coalesce(sum({what}), 0) FROM pg_stat_user_tables"))
        };
        dead = Some(sum("n_dead_tup")?);
        table_kib = Some(sum("pg_table_size(relid)")? / 1_024.0);
    }
    let more = |name: &str| outcome.more.get(name).copied();
    Ok([
        Some(won / outcome.seconds),
        Some(outcome.p50_us),
        Some(outcome.p99_us),
        more("lost_p50_us"),
        counted.log_bytes.map(|bytes| bytes / won),
        counted.row_locks.map(|locks| locks / won),
        dead,
        table_kib,
        more("errors"),
    ])
}

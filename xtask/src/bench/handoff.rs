//! From one pod's release to the next one's grant.

use super::contender::{Contender, contenders, words};
use super::engine::{Engine, Kind};
use super::section::{Section, Table};
use super::stage::{Stage, without};

/// The section.
pub(super) fn measure(stage: &Stage) -> anyhow::Result<Section> {
    let mut section = Section {
        text: format!(
            "Two pods take turns, {} of them: one waits while the other holds, for 30 to 330 ms. What counts is from the call of the release \
             to the other's grant. A pod of this project that is not told asks again within a second; the others have their own intervals, \
             as they are by default. A session's lock is handed over by the server, which a waiting connection is kept busy for.",
            stage.plan.turns
        ),
        ..Section::default()
    };
    let columns = ["engine", "contender", "keeps", "median, ms", "p99, ms", "slowest, ms"];
    let mut table = Table::new("", &columns);
    for engine in &stage.engines {
        for contender in who(engine.kind) {
            if let Err(error) = one(stage, engine, contender, &mut table) {
                section.left_out.push(without(engine.kind, &contender, &error));
            }
        }
    }
    section.tables.push(table);
    Ok(section)
}

/// All but the floor; this project also with releases that tell.
fn who(kind: Kind) -> Vec<Contender> {
    let mut all = contenders(kind);
    all.remove(0);
    if kind == Kind::Postgres {
        all.insert(0, Contender::us(kind).with("lease, told (`notify`)", &["--notify"]));
    }
    all
}

fn one(stage: &Stage, engine: &Engine, contender: Contender, table: &mut Table) -> anyhow::Result<()> {
    let at = (contender, stage.place(engine, &contender)?);
    let seconds = f64::from(stage.plan.turns) * 3.0;
    let work = words!["handoff", "--rounds", stage.plan.turns];
    let outcome = stage.work(&at, seconds, &work)?;
    let ms = |us: f64| format!("{:.2}", us / 1_000.0);
    table.row([
        engine.kind.name().into(),
        contender.label.into(),
        contender.keeps.shown().into(),
        ms(outcome.p50_us),
        ms(outcome.p99_us),
        ms(outcome.max_us),
    ]);
    Ok(())
}

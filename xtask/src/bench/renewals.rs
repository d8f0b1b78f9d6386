//! Renewals one by one, against the bare statement.

use super::contender::{Contender, Keeps, contenders, words};
use super::engine::Engine;
use super::section::{Section, Table};
use super::series::Series;
use super::stage::{Stage, in_turn, without};

const COLUMNS: [&str; 6] = [
    "connections",
    "contender",
    "renewals per second",
    "lease : it",
    "client CPU, µs each",
    "p50 / p99, µs",
];

/// The section.
pub(super) fn measure(stage: &Stage) -> anyhow::Result<Section> {
    let mut section = Section {
        text: "Each client holds a lease of its own and renews it, again and again: `Renew`, one statement. A `Lease` renews by itself, and \
               together what is due together (see the leases held, below); here its backend is called for one at a time."
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
    for other in contenders(kind) {
        let why = match other.keeps {
            Keeps::Us | Keeps::Floor => continue,
            Keeps::Session => "its lock has no time to renew",
            Keeps::Row if other.label == "distributed" => {
                "it renews nothing: its row expires under the work if that takes too long"
            }
            Keeps::Row => {
                "it renews by itself, one row a statement, and offers no call for it (see the leases held, below)"
            }
        };
        section
            .left_out
            .push(format!("{}: {}: {why}", kind.name(), other.label));
    }
    let list = vec![Contender::floor(kind), Contender::repo(kind)];
    let places = stage.places(engine, list, &mut section.left_out);
    let mut table = Table::new(kind.name(), &COLUMNS);
    for &connections in stage.plan.connections.iter().filter(|&&count| count < 32) {
        let mut shown: Vec<[Series; 4]> = places.iter().map(|_| Default::default()).collect();
        let work = words!["renew", "--clients", connections, "--seconds", stage.plan.seconds];
        for round in 0..stage.plan.rounds {
            for (at, place) in in_turn(&places, round) {
                let outcome = match stage.work(place, stage.plan.seconds, &work) {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        section.left_out.push(without(kind, &place.0, &error));
                        return Ok(());
                    }
                };
                let values = [outcome.rate(), outcome.cpu_us(), outcome.p50_us, outcome.p99_us];
                shown[at]
                    .iter_mut()
                    .zip(values)
                    .for_each(|(series, value)| series.add(value));
            }
        }
        let us = places.iter().position(|(contender, _)| contender.keeps == Keeps::Us);
        for ((contender, _), [rates, cpu, p50, p99]) in places.iter().zip(&shown) {
            let ratio = match us {
                Some(us) if contender.keeps != Keeps::Us => shown[us][0].over(rates),
                _ => Series::default(),
            };
            table.row([
                connections.to_string(),
                contender.label.into(),
                rates.shown(0),
                ratio.shown(2),
                cpu.shown(1),
                format!("{} / {}", p50.shown(0), p99.shown(0)),
            ]);
        }
    }
    section.tables.push(table);
    Ok(())
}

//! Renewals while a long snapshot is open elsewhere.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::contender::Contender;
use super::engine::Kind;
use super::process;
use super::section::{Section, Table};
use super::series::{Series, number};
use super::stage::Stage;
use crate::report::note;

/// A second of one of the two databases.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Sample {
    second: u32,
    aged: bool,
    table_bytes: f64,
    index_bytes: f64,
    dead: f64,
    renewal_us: f64,
    batch_ms: f64,
}

/// Leases beside the one that is renewed ten times a second.
const LEASES: u32 = 1_000;

/// The section, and what the plot shows.
pub(super) fn measure(stage: &Stage) -> anyhow::Result<(Section, Vec<Sample>)> {
    let (open, after) = stage.plan.aging;
    let mut section = Section {
        text: format!(
            "Two databases of one PostgreSQL server, second by second in turn: in each, one lease is renewed ten times a second, and \
             {LEASES} others every ten seconds, all in one statement. In one of them a transaction with a snapshot stays open for {open} s, so \
             that no old version of a row can be cleared away, and {after} more seconds are looked at after its end. A lease with a ttl of \
             30 s makes as many versions in {} minutes as the one here in {open} s.",
            open * 10 * 10 / 60
        ),
        ..Section::default()
    };
    let Some(engine) = stage.engine(Kind::Postgres) else {
        section.left_out.push("PostgreSQL is not here".into());
        return Ok((section, Vec::new()));
    };
    note(format_args!("renewals beside a snapshot that is open for {open} s"));
    let us = Contender::us(engine.kind);
    let (plain, aged) = (stage.place(engine, &us)?, stage.place(engine, &us)?);
    let mut command = Command::new(stage.built.tool("bench-aging"));
    command.env("BENCH_PLAIN", plain.url()).env("BENCH_AGED", aged.url());
    command.args(["--open", &open.to_string(), "--after", &after.to_string()]);
    command.args(["--leases", &LEASES.to_string()]);
    let samples: Vec<Sample> = process::said(&mut command, stage.plan.limit(f64::from(open + after) * 3.0))?;
    section.tables.push(table(&samples, open, after));
    Ok((section, samples))
}

/// A line for each tenth of the time that it was open, and one for the time after it.
fn table(samples: &[Sample], open: u32, after: u32) -> Table {
    let columns = [
        "second",
        "snapshot",
        "table, KiB",
        "index, KiB",
        "dead rows",
        "renewal, µs",
        "1,000 together, ms",
    ];
    let mut table = Table::new("", &columns);
    let step = (open / 10).max(1);
    let ends = (1..=open / step).map(|tenth| tenth * step).chain([open + after]);
    for (end, is_aged) in ends.flat_map(|end| [(end, false), (end, true)]) {
        let within = |sample: &&Sample| sample.aged == is_aged && sample.second < end && sample.second + step >= end;
        let part: Vec<&Sample> = samples.iter().filter(within).collect();
        let Some(last) = part.last() else { continue };
        let median = |value: fn(&Sample) -> f64| {
            let all: Series = part.iter().map(|sample| value(sample)).collect();
            all.shown(1)
        };
        table.row([
            end.to_string(),
            match (is_aged, end > open) {
                (false, _) => "none",
                (true, false) => "open",
                (true, true) => "ended",
            }
            .into(),
            number(last.table_bytes / 1_024.0, 0),
            number(last.index_bytes / 1_024.0, 0),
            number(last.dead, 0),
            median(|sample| sample.renewal_us),
            median(|sample| sample.batch_ms),
        ]);
    }
    table
}

/// What the program that plots is told.
fn plot(samples: &[Sample], title: &str) -> Value {
    let line = |is_aged: bool, value: fn(&Sample) -> f64| {
        let points = samples.iter().filter(|sample| sample.aged == is_aged);
        let points: Vec<(f64, f64)> = points.map(|sample| (f64::from(sample.second), value(sample))).collect();
        json!({ "name": if is_aged { "with the snapshot" } else { "without" }, "points": points })
    };
    let panel =
        |y: &str, value: fn(&Sample) -> f64| json!({ "y": y, "series": [line(false, value), line(true, value)] });
    json!({
        "title": title,
        "x": "seconds",
        "panels": [
            panel("table and index, KiB", |sample| (sample.table_bytes + sample.index_bytes) / 1_024.0),
            panel("renewal, µs", |sample| sample.renewal_us),
        ],
    })
}

/// Draws it into that file.
pub(super) fn draw(stage: &Stage, samples: &[Sample], file: &Path) -> anyhow::Result<()> {
    let (open, _) = stage.plan.aging;
    let title = format!("Renewals on PostgreSQL while a snapshot is open for {open} s elsewhere");
    let mut command = Command::new(stage.built.tool("bench-plot"));
    let mut child = command
        .arg(file)
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot start bench-plot")?;
    let input = child.stdin.take().context("its input is a pipe")?;
    serde_json::to_writer(input, &plot(samples, &title))?;
    ensure!(child.wait()?.success(), "bench-plot failed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Sample> {
        let sample = |second, aged| Sample {
            second,
            aged,
            table_bytes: 8_192.0 * f64::from(second + 1),
            index_bytes: 0.0,
            dead: 0.0,
            renewal_us: f64::from(second),
            batch_ms: 1.0,
        };
        (0..22)
            .flat_map(|second| [sample(second, false), sample(second, true)])
            .collect()
    }

    #[test]
    fn each_tenth_has_a_line_for_both_and_so_has_the_end() {
        let table = table(&samples(), 20, 2);
        assert_eq!(table.rows.len(), 22);
        let line = |at: usize| [&table.rows[at][0], &table.rows[at][1], &table.rows[at][2]];
        assert_eq!(line(0), ["2", "none", "16"]);
        assert_eq!(line(1), ["2", "open", "16"]);
        assert_eq!(line(21), ["22", "ended", "176"]);
    }

    #[test]
    fn the_plot_has_both_databases_in_each_panel() {
        let plot = plot(&samples(), "a title");
        for panel in plot["panels"].as_array().unwrap() {
            assert_eq!(panel["series"].as_array().unwrap().len(), 2);
            assert_eq!(panel["series"][1]["points"].as_array().unwrap().len(), 22);
        }
    }
}

//! The document: what was aimed at and what was reached, then every table.

use std::fmt::Write;

use super::conditions::Conditions;
use super::section::{Section, Table, Verdict};
use crate::measure::statement;

/// The text of `docs/benchmarks.md`.
///
/// # Errors
/// A statement is not where it was.
pub(super) fn document(
    conditions: &Conditions,
    sections: &[Section],
    command: &str,
    plot: Option<&str>,
) -> anyhow::Result<String> {
    let mut text = format!(
        "# Benchmarks\n\nWritten by `{command}`: not to be edited. Each figure is the median of its runs, with the least and the most in \
         parentheses; those that are compared ran in turn, in an order that changes from round to round. A ratio is taken round by \
         round.\n\n"
    );
    if conditions.busy {
        text += "**The machine had other work meanwhile: these figures are no figures.**\n\n";
    }
    text += "## Aims\n\n";
    let verdicts: Vec<&Verdict> = sections.iter().flat_map(|section| &section.verdicts).collect();
    let short: Vec<&&Verdict> = verdicts.iter().filter(|verdict| !verdict.is_met()).collect();
    let _ = writeln!(
        text,
        "{} of {} are reached.\n",
        verdicts.len() - short.len(),
        verdicts.len()
    );
    text += &table(&aims(&verdicts));
    if !short.is_empty() {
        text += "\nWhat falls short, and [why](speed.md):\n\n";
        for verdict in short {
            let _ = writeln!(
                text,
                "- {}: {}: {}, not {}",
                verdict.engine,
                verdict.what,
                verdict.is_shown(),
                verdict.aim()
            );
        }
    }
    text += "\n## Conditions\n\n";
    for line in &conditions.lines {
        let _ = writeln!(text, "- {line}");
    }
    for section in sections {
        let _ = write!(text, "\n## {}\n\n{}\n", section.title, section.text);
        for one in &section.tables {
            if one.rows.is_empty() {
                continue;
            }
            if !one.title.is_empty() {
                let _ = write!(text, "\n### {}\n", one.title);
            }
            text += "\n";
            text += &table(one);
        }
        if let Some(plot) = plot.filter(|_| section.title.contains("snapshot")) {
            let _ = write!(text, "\n![Table size and latency of renewals over time]({plot})\n");
        }
        if !section.left_out.is_empty() {
            text += "\nLeft out:\n\n";
            for line in &section.left_out {
                let _ = writeln!(text, "- {}", line.replace('\n', " "));
            }
        }
    }
    text += "\n## The statements of the floor\n\nThose that the tests of each backend pin, in a bare loop of the driver or in pgbench, without a pool, \
             time limits or retries: [PostgreSQL](../lease-postgres/tests/statements.sql), [MySQL and \
             MariaDB](../lease-mysql/tests/statements.sql), [SQLite](../lease-sqlite/tests/statements.sql). On PostgreSQL a pair is these \
             two:\n\n```sql\n";
    for name in ["Acquire", "Release"] {
        text += statement(name).ok_or_else(|| anyhow::anyhow!("no statement {name}"))?;
        text += "\n";
    }
    text += "```\n";
    Ok(text)
}

fn aims(verdicts: &[&Verdict]) -> Table {
    let mut table = Table::new("", &["engine", "what", "over", "is", "aim", ""]);
    for verdict in verdicts {
        table.row([
            verdict.engine.into(),
            verdict.what.clone(),
            verdict.against.clone(),
            verdict.is_shown(),
            verdict.aim(),
            if verdict.is_met() { "reached" } else { "**falls short**" }.into(),
        ]);
    }
    table
}

fn table(table: &Table) -> String {
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(&mut table.columns.iter().copied());
    text += &format!("|{}\n", "---|".repeat(table.columns.len()));
    for row in &table.rows {
        text += &line(&mut row.iter().map(String::as_str));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::section::Good;

    fn section(is: f64) -> Section {
        let verdict = Verdict {
            engine: "PostgreSQL",
            what: "pairs".into(),
            against: "pgbench: `Acquire`, `Release`".into(),
            is: [is].into_iter().collect(),
            good: Good::AtLeast,
            aim: 0.9,
        };
        let mut table = Table::new("PostgreSQL", &["who", "how | much"]);
        table.row(["lease".into(), "7".into()]);
        Section {
            title: "Pairs",
            text: "Text.".into(),
            tables: vec![table],
            verdicts: vec![verdict],
            left_out: vec!["x: no such\nthing".into()],
            is_failed: false,
        }
    }

    fn written(is: f64, busy: bool) -> String {
        let conditions = Conditions {
            lines: vec!["Kernel: K".into()],
            busy,
        };
        document(&conditions, &[section(is)], "cargo xtask bench", None).unwrap()
    }

    #[test]
    fn what_falls_short_is_said_on_top() {
        let text = written(0.8, false);
        assert!(text.contains("0 of 1 are reached."), "{text}");
        assert!(text.contains("- PostgreSQL: pairs: 0.80, not ≥ 0.90"), "{text}");
        assert!(
            text.contains("pgbench: `Acquire`, `Release` | 0.80 | ≥ 0.90 | **falls short** |"),
            "{text}"
        );
        let text = written(0.95, false);
        assert!(
            text.contains("1 of 1 are reached.") && !text.contains("falls short"),
            "{text}"
        );
    }

    #[test]
    fn tables_conditions_and_what_was_left_out_are_there() {
        let text = written(1.0, false);
        assert!(
            text.contains("| who | how \\| much |\n|---|---|\n| lease | 7 |\n"),
            "{text}"
        );
        assert!(
            text.contains("- Kernel: K\n") && text.contains("- x: no such thing\n"),
            "{text}"
        );
        assert!(text.contains("SKIP LOCKED"), "{text}");
    }

    #[test]
    fn figures_of_a_busy_machine_are_named_so() {
        assert!(written(1.0, true).contains("no figures"));
        assert!(!written(1.0, false).contains("no figures"));
    }
}

//! What a verb found: a table for people, one JSON object for programs, and an exit code for both.

use std::process::ExitCode;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde_json::{Map, Value, json};

/// The answer of a verb.
#[derive(Debug, Default)]
pub(crate) struct Report {
    columns: &'static [&'static str],
    rows: Vec<Vec<Value>>,
    facts: Vec<(&'static str, Value)>,
    details: Vec<(&'static str, Value)>,
    missed: Vec<String>,
}

impl Report {
    /// An empty table.
    pub(crate) fn new(columns: &'static [&'static str]) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }

    /// A verb that could not do its work at all.
    pub(crate) fn broken(error: &anyhow::Error) -> Self {
        let mut report = Self::default();
        report.miss(format!("{error:#}"));
        report
    }

    /// Adds a line to the table: one value for each column.
    pub(crate) fn row<const N: usize>(&mut self, values: [Value; N]) {
        debug_assert_eq!(values.len(), self.columns.len(), "a row has a value for each column");
        self.rows.push(values.into());
    }

    /// Adds a single value, shown below the table.
    pub(crate) fn fact(&mut self, name: &'static str, value: impl Into<Value>) {
        self.facts.push((name, value.into()));
    }

    /// Adds what programs alone are told: it would be too long for a table.
    pub(crate) fn detail(&mut self, name: &'static str, value: impl Into<Value>) {
        self.details.push((name, value.into()));
    }

    /// Says how the aim was missed. The verb then exits with 1.
    pub(crate) fn miss(&mut self, how: impl Into<String>) {
        self.missed.push(how.into());
    }

    /// The exit code: 0 if the aim was reached.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.missed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    /// Writes the report to standard output.
    #[expect(clippy::print_stdout, reason = "the one place that writes to standard output")]
    pub(crate) fn print(&self, json: bool) {
        if json {
            println!("{}", self.to_json());
        } else {
            println!("{}", self.to_text());
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let row = |values: &Vec<Value>| -> Value {
            let named = self.columns.iter().map(|&column| column.to_owned());
            Value::Object(named.zip(values.iter().cloned()).collect::<Map<_, _>>())
        };
        let mut object = Map::new();
        object.insert("ok".into(), json!(self.missed.is_empty()));
        object.insert("missed".into(), json!(self.missed));
        object.insert("rows".into(), self.rows.iter().map(row).collect());
        object.extend(
            self.facts
                .iter()
                .chain(&self.details)
                .map(|(name, value)| ((*name).to_owned(), value.clone())),
        );
        Value::Object(object)
    }

    fn to_text(&self) -> String {
        let mut parts = Vec::new();
        if !self.rows.is_empty() {
            let mut table = Table::new();
            table.load_style(presets::UTF8_BORDERS_ONLY);
            table.set_content_arrangement(ContentArrangement::Disabled);
            table.set_header(self.columns.iter().copied());
            for row in &self.rows {
                table.add_row(row.iter().map(cell));
            }
            parts.push(table.to_string());
        }
        let facts = self.facts.iter();
        parts.extend(facts.map(|(name, value)| format!("{}: {}", name.replace('_', " "), text(value))));
        parts.extend(self.missed.iter().map(|how| format!("MISSED: {how}")));
        parts.join("\n")
    }
}

fn cell(value: &Value) -> Cell {
    let cell = Cell::new(text(value));
    if value.is_number() {
        cell.set_alignment(CellAlignment::Right)
    } else {
        cell
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Tells the person who waits what is going on.
pub(crate) fn note(text: impl std::fmt::Display) {
    eprintln!("xtask: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Report {
        let mut report = Report::new(&["check", "seconds"]);
        report.row([json!("fmt"), json!(1.5)]);
        report.fact("tests_run", 7);
        report
    }

    #[test]
    fn json_has_rows_by_column_and_facts_by_name() {
        let expected = json!({
            "ok": true,
            "missed": [],
            "rows": [{"check": "fmt", "seconds": 1.5}],
            "tests_run": 7,
        });
        assert_eq!(sample().to_json(), expected);
    }

    #[test]
    fn details_are_for_programs_alone() {
        let mut report = sample();
        report.detail("every_figure", json!([1, 2]));
        assert_eq!(report.to_json()["every_figure"], json!([1, 2]));
        assert!(!report.to_text().contains("every"), "{}", report.to_text());
    }

    #[test]
    fn text_shows_what_was_missed() {
        let mut report = sample();
        report.miss("two tests failed");
        let text = report.to_text();
        assert!(text.contains("fmt") && text.contains("tests run: 7"), "{text}");
        assert!(text.ends_with("MISSED: two tests failed"), "{text}");
        assert_eq!(report.exit_code(), ExitCode::FAILURE);
    }
}

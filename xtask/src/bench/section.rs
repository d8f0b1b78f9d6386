//! [`Section`]: what one kind of work has shown: tables, and each aim with what was reached.

use serde_json::{Value, json};

use super::series::{Series, number};

/// A chapter of the document.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) title: &'static str,
    /// What was done, and how it is to be read.
    pub(super) text: String,
    pub(super) tables: Vec<Table>,
    pub(super) verdicts: Vec<Verdict>,
    /// What could not be measured, and why.
    pub(super) left_out: Vec<String>,
    pub(super) is_failed: bool,
}

/// One table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) title: String,
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(title: impl Into<String>, columns: &[&'static str]) -> Self {
        Self {
            title: title.into(),
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(cells.into());
    }
}

/// Which side of the aim is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Good {
    AtLeast,
    AtMost,
}

/// An aim and what was reached.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    pub(super) engine: &'static str,
    pub(super) what: String,
    /// What a ratio is over, with the statements it ran.
    pub(super) against: String,
    pub(super) is: Series,
    pub(super) good: Good,
    pub(super) aim: f64,
}

impl Verdict {
    /// By the median. What was not measured is not met.
    pub(super) fn is_met(&self) -> bool {
        self.is.median().is_some_and(|is| match self.good {
            Good::AtLeast => is >= self.aim,
            Good::AtMost => is <= self.aim,
        })
    }

    /// The aim as it is shown.
    pub(super) fn aim(&self) -> String {
        let sign = match self.good {
            Good::AtLeast => "≥",
            Good::AtMost => "≤",
        };
        format!("{sign} {}", number(self.aim, decimals(self.aim)))
    }

    pub(super) fn is_shown(&self) -> String {
        self.is.shown(2)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "engine": self.engine,
            "what": self.what,
            "against": self.against,
            "runs": self.is.to_json(),
            "median": self.is.median(),
            "aim": self.aim(),
            "met": self.is_met(),
        })
    }
}

fn decimals(aim: f64) -> usize {
    if aim.fract() == 0.0 { 0 } else { 2 }
}

impl Section {
    /// Of a part that failed: the figures of the others do not go with it.
    pub(super) fn failed(error: &anyhow::Error) -> Self {
        Self {
            left_out: vec![format!("all of it: {error:#}")],
            is_failed: true,
            ..Self::default()
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let tables = self
            .tables
            .iter()
            .map(|table| json!({ "title": table.title, "columns": table.columns, "rows": table.rows }));
        json!({
            "title": self.title,
            "tables": tables.collect::<Vec<_>>(),
            "verdicts": self.verdicts.iter().map(Verdict::to_json).collect::<Vec<_>>(),
            "left_out": self.left_out,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(good: Good, values: &[f64]) -> Verdict {
        Verdict {
            engine: "PostgreSQL",
            what: String::new(),
            against: String::new(),
            is: values.iter().copied().collect(),
            good,
            aim: 0.9,
        }
    }

    #[test]
    fn the_median_decides_and_nothing_is_not_enough() {
        assert!(verdict(Good::AtLeast, &[0.5, 0.9, 1.0]).is_met());
        assert!(!verdict(Good::AtLeast, &[0.5, 0.89, 1.0]).is_met());
        assert!(verdict(Good::AtMost, &[0.5, 0.9, 1.0]).is_met());
        assert!(!verdict(Good::AtMost, &[0.5, 0.91, 1.0]).is_met());
        assert!(!verdict(Good::AtMost, &[]).is_met());
        assert!(!verdict(Good::AtLeast, &[f64::NAN]).is_met());
    }
}

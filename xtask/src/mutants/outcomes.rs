//! What cargo-mutants found, from its `outcomes.json`.

use anyhow::Context;
use serde::Deserialize;

/// The results of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    /// Mutants that a test noticed, by failing or by never ending.
    pub(crate) noticed: usize,
    /// Mutants that do not compile, and so say nothing.
    pub(crate) unviable: usize,
    /// Mutants that no test noticed, without the line and column, which change with every edit above them.
    pub(crate) alive: Vec<String>,
}

#[derive(Deserialize)]
struct Results {
    outcomes: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    scenario: Scenario,
    summary: Summary,
}

#[derive(Deserialize)]
enum Scenario {
    Baseline,
    Mutant { name: String },
}

#[derive(Deserialize)]
enum Summary {
    Success,
    CaughtMutant,
    MissedMutant,
    Unviable,
    Failure,
    Timeout,
}

impl Outcomes {
    /// Adds the results for other files.
    pub(crate) fn add(&mut self, other: Self) {
        self.noticed += other.noticed;
        self.unviable += other.unviable;
        self.alive.extend(other.alive);
    }

    /// Reads the results.
    ///
    /// # Errors
    ///
    /// They are not in the form we know.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let results: Results = serde_json::from_str(text).context("cargo-mutants' results have another form")?;
        let mut all = Self::default();
        for Outcome { scenario, summary } in results.outcomes {
            match (scenario, summary) {
                (Scenario::Baseline, _) => {}
                (_, Summary::CaughtMutant | Summary::Timeout) => all.noticed += 1,
                (_, Summary::Unviable) => all.unviable += 1,
                (Scenario::Mutant { name }, _) => all.alive.push(without_place(&name)),
            }
        }
        Ok(all)
    }
}

/// `a/b.rs:12:5: replace + with -` without the numbers.
fn without_place(name: &str) -> String {
    let Some((place, what)) = name.split_once(": ") else {
        return name.to_owned();
    };
    let file = place.split(':').next().unwrap_or(place);
    format!("{file}: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_sorted_by_what_the_tests_said() {
        let outcome = |scenario: &str, summary: &str| format!(r#"{{"scenario":{scenario},"summary":"{summary}"}}"#);
        let mutant =
            |name: &str, summary| outcome(&format!(r#"{{"Mutant":{{"name":"{name}","package":"p"}}}}"#), summary);
        let outcomes = [
            outcome(r#""Baseline""#, "Success"),
            mutant("a/b.rs:1:2: replace + with - in f", "CaughtMutant"),
            mutant("a/b.rs:2:2: replace < with <= in f", "MissedMutant"),
            mutant("a/b.rs:3:2: replace f -> T with Default::default()", "Unviable"),
            mutant("a/b.rs:4:2: replace f with ()", "Timeout"),
        ];
        let parsed = Outcomes::parse(&format!(r#"{{"outcomes":[{}],"missed":1}}"#, outcomes.join(","))).unwrap();
        assert_eq!((parsed.noticed, parsed.unviable), (2, 1));
        assert_eq!(parsed.alive, ["a/b.rs: replace < with <= in f"]);
    }

    #[test]
    fn other_form_is_an_error() {
        assert!(Outcomes::parse("{}").is_err());
    }
}

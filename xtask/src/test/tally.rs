//! Counting what test programs say.

use std::collections::{BTreeMap, BTreeSet};

use lease_testkit::Case;

use super::programs::Programs;

/// What was counted so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    passed: u64,
    /// Tests that ran and failed.
    pub(crate) failed: u64,
    /// Tests that did not run.
    pub(crate) ignored: u64,
    /// The program whose output is being read, as `package/target`.
    program: String,
    /// Tests that passed, by program.
    by_program: BTreeMap<String, BTreeSet<String>>,
}

impl Tally {
    /// Reads the next line of a `cargo test`.
    pub(crate) fn line(&mut self, line: &str, programs: &Programs) {
        let line = line.trim_start();
        if line.starts_with("Running ") || line.starts_with("Doc-tests ") {
            let path = line.rsplit_once('(').map(|(_, path)| path.trim_end_matches(')'));
            let name = path.and_then(|path| programs.name(path));
            self.program = name.unwrap_or_default().to_owned();
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.counts(counts);
        } else if let Some(test) = line.strip_prefix("test ").and_then(|test| test.strip_suffix(" ... ok")) {
            let tests = self.by_program.entry(self.program.clone()).or_default();
            tests.insert(test.to_owned());
        }
    }

    /// The tests that ran, whether they passed or failed.
    pub(crate) fn run(&self) -> u64 {
        self.passed + self.failed
    }

    /// How many of these cases a program has executed and passed, in the module whose path `prefix` is.
    pub(crate) fn executed(&self, program: &str, prefix: &str, cases: &[Case]) -> usize {
        let Some(tests) = self.by_program.get(program) else {
            return 0;
        };
        let names = cases
            .iter()
            .map(|case| format!("{prefix}{}::{}", case.group, case.name));
        names.filter(|name| tests.contains(name)).count()
    }

    /// `ok. 3 passed; 0 failed; 1 ignored; 0 measured; ..`
    fn counts(&mut self, text: &str) {
        for part in text.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(count), Some(what)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(count) = count.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lease_testkit::CASES;

    fn tally(lines: &[&str]) -> Tally {
        let programs = Programs::sample("conformance-0f", "lease-postgres/conformance");
        let mut tally = Tally::default();
        for line in lines {
            tally.line(line, &programs);
        }
        tally
    }

    const HEAD: &str = "     Running tests/conformance.rs (target/debug/deps/conformance-0f)";

    #[test]
    fn results_are_added_up() {
        let first = "test result: FAILED. 3 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.51s";
        let second = "test result: ok. 10 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out; finished in 10.00s";
        let tally = tally(&[HEAD, first, "   Doc-tests lease_core", second]);
        assert_eq!((tally.run(), tally.failed, tally.ignored), (15, 2, 1));
    }

    #[test]
    fn case_counts_if_it_passed_in_that_program() {
        let [first, second, third] = [0, 1, 2].map(|index| format!("{}::{}", CASES[index].group, CASES[index].name));
        let tally = tally(&[
            &format!("test {third} ... ok"),
            HEAD,
            &format!("test {first} ... ok"),
            &format!("test {second} ... ignored, needs PostgreSQL"),
            &format!("test deleting::{second} ... ok"),
            &format!("test {third} ... FAILED"),
            "     Running tests/sql.rs (target/debug/deps/sql-0f)",
            &format!("test {second} ... ok"),
        ]);
        assert_eq!(tally.executed("lease-postgres/conformance", "", CASES), 1);
        assert_eq!(tally.executed("lease-postgres/conformance", "deleting::", CASES), 1);
        assert_eq!(tally.executed("lease-postgres/conformance", "mysql::", CASES), 0);
        assert_eq!(tally.executed("lease-mysql/conformance", "", CASES), 0);
    }
}

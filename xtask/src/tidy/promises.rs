//! A test that the docs name is there.

use std::collections::HashSet;

use lease_testkit::CASES;

use super::{File, Finding};

/// The pages that say which test shows what.
const PAGES: [&str; 4] = [
    "docs/guarantees.md",
    "docs/cases.md",
    "docs/hazards.md",
    "docs/proof.md",
];

/// Tests named in these pages that no file has, and cases that the suite has not.
pub(super) fn unkept(files: &[File]) -> Vec<Finding> {
    let functions: HashSet<&str> = files
        .iter()
        .filter(|file| file.is(&[".rs"]))
        .flat_map(|file| file.text.split("fn ").skip(1))
        .filter_map(|rest| rest.split(['(', '<']).next())
        .collect();
    let cases: HashSet<String> = CASES
        .iter()
        .map(|case| format!("{}::{}", case.group, case.name))
        .collect();
    let pages = files.iter().filter(|file| PAGES.contains(&file.path.as_str()));
    pages.flat_map(|page| missing(page, &functions, &cases)).collect()
}

fn missing(page: &File, functions: &HashSet<&str>, cases: &HashSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in page.lines() {
        // Every second part lies between two backticks.
        for name in line.split('`').skip(1).step_by(2) {
            let kept = if name.contains("::") {
                cases.contains(name)
            } else {
                !is_test(name) || functions.contains(name)
            };
            if !kept {
                findings.push(page.finding(number, format!("no test is called {name}")));
            }
        }
    }
    findings
}

/// A test's name is a sentence: at least five words.
fn is_test(name: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    name.split('_').count() >= 5 && name.split('_').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sample;

    #[test]
    fn a_promise_without_a_test_is_found() {
        let test = sample("lease-core/tests/a.rs", "async fn c01_one_two_three_four() {}");
        let page = |text| sample("docs/cases.md", text);
        let found = |text| unkept(&[sample(&test.path, &*test.text), page(text)]).len();
        assert_eq!(found("`c01_one_two_three_four` and `at_least_for`"), 0);
        assert_eq!(found("`c01_one_two_three_five`"), 1);
        assert_eq!(found("`basic::live_lease_is_busy_for_others`"), 0);
        assert_eq!(found("`basic::no_such_case`"), 1);
    }
}

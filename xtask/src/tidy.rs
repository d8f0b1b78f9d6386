//! `tidy`: the rules of the house that neither the compiler nor clippy knows, checked by a program, not by memory.
//!
//! The patterns are put together from halves, so that this program does not find itself.

mod book;
mod length;
mod links;
mod promises;
mod rules;

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::report::Report;
use crate::run::{self, Stopwatch, root};

pub(crate) use book::{SUMMARY, chapters};

/// A text file of the tree.
#[derive(Debug)]
struct File {
    /// From the root of the workspace, with slashes.
    path: String,
    text: String,
}

impl File {
    /// Whether its name ends in one of these.
    fn is(&self, endings: &[&str]) -> bool {
        endings.iter().any(|ending| self.path.ends_with(ending))
    }

    /// Its lines, counted from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            path: self.path.clone(),
            line,
            message: message.into(),
        }
    }
}

/// A line that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// The verb.
pub(crate) fn run() -> anyhow::Result<Report> {
    let watch = Stopwatch::start();
    let mut report = Report::new(&["where", "what"]);
    let findings = findings()?;
    for finding in &findings {
        let place = format!("{}:{}", finding.path, finding.line);
        report.row([json!(place), json!(finding.message)]);
    }
    report.fact("seconds", watch.seconds());
    if !findings.is_empty() {
        report.miss(format!("{} lines break a rule of the house", findings.len()));
    }
    Ok(report)
}

/// What is wrong in the tree, in order.
pub(crate) fn findings() -> anyhow::Result<Vec<Finding>> {
    let files = files()?;
    let headings = links::of_all(&files);
    let in_one_file = |file| in_one_file(file, &headings);
    let mut findings: Vec<Finding> = files.iter().flat_map(in_one_file).collect();
    findings.extend(book::holes(&files));
    findings.extend(length::unneeded(&files));
    findings.extend(promises::unkept(&files));
    findings.sort();
    Ok(findings)
}

fn in_one_file(file: &File, headings: &links::Headings) -> Vec<Finding> {
    let mut findings: Vec<Finding> = rules::ALL.iter().flat_map(|rule| rule(file)).collect();
    findings.extend(length::too_long(file));
    findings.extend(links::broken(file, headings, |target| root().join(target).exists()));
    findings
}

/// What git knows or would add: no build output, nothing that is ignored. Lock files are not ours to word.
fn files() -> anyhow::Result<Vec<File>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root());
    let listed = run::output(&mut git)?;
    let paths = listed.split(|&byte| byte == 0).filter(|path| !path.is_empty());
    let paths = paths.map(|path| String::from_utf8_lossy(path).into_owned());
    // A file that is gone but not yet committed so, or is no text, has no lines.
    let read = |path: String| {
        let text = fs::read_to_string(root().join(&path)).ok()?;
        Some(File { path, text })
    };
    let is_lock = |path: &String| Path::new(path).extension().is_some_and(|ending| ending == "lock");
    Ok(paths.filter(|path| !is_lock(path)).filter_map(read).collect())
}

#[cfg(test)]
fn sample(path: &str, text: impl Into<String>) -> File {
    File {
        path: path.to_owned(),
        text: text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_source_is_listed_and_lock_file_is_not() {
        let files = files().unwrap();
        assert!(files.iter().any(|file| file.path == "xtask/src/tidy.rs"));
        assert!(!files.iter().any(|file| file.path == "Cargo.lock"));
    }

    #[test]
    fn finding_says_file_and_line() {
        let finding = sample("a/b.rs", "").finding(3, "is wrong");
        assert_eq!(finding.to_string(), "a/b.rs:3: is wrong");
    }
}

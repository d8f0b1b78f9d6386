//! How a property is run: the inputs of its corpus, what failed once, and random inputs.
//!
//! A corpus is a folder of text files, one input each. A file starts with `#` and why it is there. Its other lines are
//! the input, in the form that the property says.

use std::env;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngSeed, TestCaseResult, TestRunner};

/// One input of a corpus.
pub(crate) struct Seed {
    pub(crate) file: String,
    pub(crate) lines: Vec<String>,
}

/// All inputs of a folder, by name.
pub(crate) fn corpus(folder: &str) -> Vec<Seed> {
    let mut seeds: Vec<Seed> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{folder}: {error}"))
        .map(|entry| seed(&entry.unwrap().path()))
        .collect();
    seeds.sort_by(|a, b| a.file.cmp(&b.file));
    assert!(!seeds.is_empty(), "{folder} is empty");
    seeds
}

fn seed(path: &Path) -> Seed {
    let file = path.display().to_string();
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert!(text.starts_with("# "), "{file} does not say why it is there");
    let lines = text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned);
    Seed {
        lines: lines.collect(),
        file,
    }
}

impl Seed {
    /// The lines put together as one text. `3 * x` is `xxx`; `\u{..}`, `\n`, `\t`, `\0` and `\\` are as in Rust.
    pub(crate) fn text(&self) -> String {
        let pieces = self.lines.iter().map(|line| match line.split_once(" * ") {
            Some((count, piece)) if count.parse::<usize>().is_ok() => unescaped(piece).repeat(count.parse().unwrap()),
            _ => unescaped(line),
        });
        pieces.collect()
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match rest.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('0') => '\0',
            Some('\\') => '\\',
            Some('u') => {
                let digits: String = rest.by_ref().skip(1).take_while(|c| *c != '}').collect();
                u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).unwrap()
            }
            other => panic!("{text}: an escape that is none: {other:?}"),
        });
    }
    out
}

/// Runs a property over what failed once and over random inputs: so many, the same each time; or as many as
/// `PROPTEST_CASES` says, others each time.
///
/// A new failure is appended to `regressions`, a path below this crate's folder. Commit it with the fix.
pub(crate) fn check<S: Strategy>(
    regressions: &'static str,
    cases: u32,
    inputs: &S,
    property: impl Fn(S::Value) -> TestCaseResult,
) {
    let long = env::var("PROPTEST_CASES").ok();
    let config = ProptestConfig {
        cases: long.as_ref().map_or(cases, |cases| cases.parse().unwrap()),
        rng_seed: if long.is_some() {
            RngSeed::Random
        } else {
            RngSeed::Fixed(1)
        },
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))),
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(inputs, property)
        .unwrap_or_else(|failure| panic!("{failure}"));
}

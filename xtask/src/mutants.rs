//! `mutants`: breaks the code on purpose, in two ways, and fails if no test notices.
//!
//! First the kit's own mutants, rules of the reference backend that can be switched off: each is noticed by a case,
//! and each case notices one. Then cargo-mutants, which rewrites the sources that decide.

mod alive;
mod outcomes;

use std::fs;

use anyhow::{Context, bail};
use serde_json::json;

use crate::report::Report;
use crate::run::{self, Stopwatch, cargo, root};
use crate::tools;
use alive::Alive;
use outcomes::Outcomes;

/// What `mutants` can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Builds cargo-mutants if it is missing.
    #[arg(long)]
    install: bool,
    /// Only these files, as globs from the root of the workspace; may be repeated.
    #[arg(long)]
    file: Vec<String>,
}

/// Sources, and the tests that are about them: each mutant costs a build and a run of these.
struct Part {
    /// As globs from the root of the workspace.
    files: &'static [&'static str],
    packages: &'static [&'static str],
    /// How to have the rules that can be broken, where no package asks for them.
    features: &'static [&'static str],
    targets: &'static [&'static str],
}

/// The sources that decide who holds a lease and for how long: the state machine, the reference of the row, the keeper.
const PARTS: [Part; 3] = [
    Part {
        files: &[
            "lease-core/src/tenure.rs",
            "lease-core/src/tenure/*.rs",
            "lease-core/src/timing.rs",
        ],
        packages: &["lease-core"],
        features: &["--features=mutants"],
        targets: &["--lib"],
    },
    Part {
        files: &[
            "lease-core/src/memory.rs",
            "lease-core/src/memory/rows.rs",
            "lease-core/src/memory/rows/*.rs",
        ],
        packages: &["lease-core", "lease-testkit"],
        features: &[],
        targets: &["--lib", "--test=memory", "--test=laws", "--test=mutants"],
    },
    Part {
        files: &["lease-core/src/keeper.rs", "lease-core/src/keeper/*.rs"],
        packages: &["lease-core", "lease-testkit"],
        features: &[],
        targets: &[
            "--test=front_door",
            "--test=ending",
            "--test=keeper",
            "--test=undo",
            "--test=threads",
            "--test=many",
        ],
    },
];

/// Tests themselves are not judged.
const TESTS: [&str; 2] = ["--exclude=**/tests.rs", "--exclude=**/tests/*.rs"];

/// How cargo-mutants ends when it has tried every mutant: all noticed, some alive, some timed out.
const FINISHED: [i32; 3] = [0, 2, 3];

/// Those that no test notices, each with its reason.
const LIST: &str = "xtask/mutants-alive.toml";

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let total = Stopwatch::start();
    let listed = Alive::parse(&fs::read_to_string(root().join(LIST)).context(LIST)?).context(LIST)?;
    tools::MUTANTS.ensure(args.install)?;
    let mut report = Report::new(&["mutants", "noticed", "alive", "listed", "do not compile", "seconds"]);

    let watch = Stopwatch::start();
    let matrix = run::succeeds(&mut cargo(["test", "-p", "lease-testkit", "--test", "mutants"]))?;
    let word = if matrix { "all" } else { "NOT ALL" };
    let seconds = watch.seconds();
    report.row([
        json!("the kit's"),
        json!(word),
        json!(null),
        json!(null),
        json!(null),
        seconds,
    ]);
    if !matrix {
        report.miss("a mutant of the kit is not noticed, or its matrix is out of date: see above");
    }

    let watch = Stopwatch::start();
    let outcomes = rewritten(&args.file)?;
    // With a part of the files only, nothing is known about those listed for the others.
    let verdict = listed.compare(&outcomes, args.file.is_empty());
    report.row([
        json!("of the sources"),
        json!(outcomes.noticed),
        json!(outcomes.alive.len()),
        json!(outcomes.alive.len() - verdict.unlisted.len()),
        json!(outcomes.unviable),
        watch.seconds(),
    ]);
    for mutant in verdict.unlisted {
        report.miss(format!("alive, and not in {LIST}: {mutant}"));
    }
    for mutant in verdict.stale {
        report.miss(format!("in {LIST}, but no longer alive: {mutant}"));
    }
    report.fact("seconds", total.seconds());
    Ok(report)
}

/// Runs cargo-mutants on each part; with `only`, on those of its files.
fn rewritten(only: &[String]) -> anyhow::Result<Outcomes> {
    let mut all = Outcomes::default();
    for part in &PARTS {
        let files: Vec<&str> = if only.is_empty() {
            part.files.to_vec()
        } else {
            let folder = |file: &&str| file.trim_end_matches("*.rs").trim_end_matches(".rs").to_owned();
            let ours = |file: &&String| part.files.iter().any(|ours| file.starts_with(&folder(ours)));
            only.iter().filter(ours).map(String::as_str).collect()
        };
        if !files.is_empty() {
            all.add(rewritten_part(part, &files)?);
        }
    }
    if all.noticed == 0 {
        bail!(
            "no mutant was noticed: {} lead to no code that can be rewritten",
            only.join(", ")
        );
    }
    Ok(all)
}

fn rewritten_part(part: &Part, files: &[&str]) -> anyhow::Result<Outcomes> {
    let mut baseline = cargo(["test"]);
    for package in part.packages {
        baseline.args(["--package", package]);
    }
    if !run::succeeds(baseline.args(part.features).args(part.targets))? {
        bail!("the tests fail on the unchanged sources");
    }
    let mut command = cargo(["mutants", "--no-shuffle", "--colors", "never", "--jobs", "2"]);
    command.args(["--package", "lease-core", "--test-package", &part.packages.join(",")]);
    // We have just run them. On a busy machine, tests that are slow are not taken for tests that hang.
    command
        .args(part.features)
        .args(["--baseline", "skip", "--timeout", "180"])
        .args(TESTS);
    // Most of the time goes into linking tests that nobody is going to debug.
    command.env("CARGO_PROFILE_DEV_DEBUG", "false");
    // To every call, so that other tests are not even built.
    for target in part.targets {
        command.arg(format!("--cargo-arg={target}"));
    }
    for file in files {
        command.args(["--file", file]);
    }
    let results = root().join("mutants.out/outcomes.json");
    // What an earlier run left must not be read as the result of this one.
    if results.exists() {
        fs::remove_file(&results)?;
    }
    // Anything else and it did not get to its end: what it has written by then says nothing of the rest.
    let status = run::status(&mut command)?;
    if !status.code().is_some_and(|code| FINISHED.contains(&code)) {
        bail!("cargo-mutants did not finish: {status}");
    }
    Outcomes::parse(&fs::read_to_string(&results).context("cargo-mutants left no results")?)
}

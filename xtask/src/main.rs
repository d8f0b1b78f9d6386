//! The one door to this workspace: `cargo xtask <verb>`.
//!
//! Each verb is a file with a `run` that answers with a [`Report`]: a table for people, or one JSON object with
//! `--json`. What the tools it calls have to say goes to standard error.

mod bench;
mod chaos;
mod check;
mod demo;
mod docs;
mod features;
mod fix;
mod group;
mod images;
mod machine;
mod markdown;
mod measure;
mod model;
mod mutants;
mod release;
mod report;
mod run;
mod server;
mod sim;
mod test;
mod tidy;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::report::Report;

/// The one door to this workspace.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    version,
    arg_required_else_help = true
)]
struct Door {
    /// One JSON object on standard output instead of a table.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Finds or makes the test servers, and runs every test.
    Test(test::Args),
    /// Formats, lints, documents, audits and tidies; changes no file.
    Check(check::Args),
    /// Formats, and applies what the linter suggests.
    Fix,
    /// The house rules alone, in a second.
    Tidy,
    /// The book as web pages, with the interfaces of the crates beside it.
    Docs(docs::Args),
    /// What a release needs beside `test` and `check`: packages, oldest dependencies, the interface against the last release.
    Release(release::Args),
    /// Builds the images of test servers that are missing, from Debian's packages.
    Images,
    /// Breaks the code on purpose, and fails if no test notices.
    Mutants(mutants::Args),
    /// Tries every order of events on the real state machine, up to a bound.
    Model(model::Args),
    /// Plays worlds of pods under faults, a million tenures if told so, and fails if an invariant is violated.
    Sim(sim::Args),
    /// Pods and real servers under faults, and the checker of what the pods did: 10 minutes, or 1,000 faults.
    Chaos(chaos::Args),
    /// `lease demo` on a real PostgreSQL: three pods, of which one is killed, one paused and one told to end.
    Demo(demo::Args),
    /// Takes figures from a real server, and fails where one misses its aim.
    #[command(subcommand)]
    Measure(measure::What),
    /// The same work through this project, the bare statements and other libraries; writes docs/benchmarks.md.
    Bench(bench::Args),
    #[command(hide = true)]
    HerdPod(measure::HerdPodArgs),
    #[command(hide = true)]
    HandoffHolder(measure::HandoffHolderArgs),
}

impl Verb {
    fn run(&self) -> anyhow::Result<Report> {
        match self {
            Self::Test(args) => test::run(args),
            Self::Check(args) => check::run(args),
            Self::Fix => fix::run(),
            Self::Tidy => tidy::run(),
            Self::Docs(args) => docs::run(args),
            Self::Release(args) => release::run(args),
            Self::Images => images::run(),
            Self::Mutants(args) => mutants::run(args),
            Self::Model(args) => model::run(args),
            Self::Sim(args) => sim::run(args),
            Self::Chaos(args) => chaos::run(args),
            Self::Demo(args) => demo::run(args),
            Self::Measure(what) => measure::run(what),
            Self::Bench(args) => bench::run(args),
            Self::HerdPod(args) => measure::run_herd_pod(args).map(|()| Report::default()),
            Self::HandoffHolder(args) => measure::run_handoff_holder(args).map(|()| Report::default()),
        }
    }
}

fn main() -> ExitCode {
    let door = Door::parse();
    let report = door.verb.run().unwrap_or_else(|error| Report::broken(&error));
    report.print(door.json);
    report.exit_code()
}

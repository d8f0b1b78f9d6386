//! `check`: everything that can be said about the code without running it. No file of the tree is changed.

use std::process::Command;

use serde_json::json;

use crate::report::{Report, note};
use crate::run::{self, Stopwatch, cargo};
use crate::{features, tidy, tools};

/// What `check` can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Builds cargo-deny if it is missing.
    #[arg(long)]
    install: bool,
}

/// Runs all checks, also after one has failed: a person wants to hear of everything at once.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let total = Stopwatch::start();
    let mut report = Report::new(&["check", "result", "seconds"]);
    check(&mut report, "tidy", is_tidy);
    for (name, mut command) in by_cargo() {
        check(&mut report, name, || run::succeeds(&mut command));
    }
    check(&mut report, "features", features::each_alone);
    check(&mut report, "deny", || {
        tools::DENY.ensure(args.install)?;
        run::succeeds(tools::DENY.command().args(DENY))
    });
    report.fact("seconds", total.seconds());
    Ok(report)
}

/// The advisories are left out: their database is no package, and a check must not change its mind over night.
const DENY: [&str; 6] = ["--workspace", "--all-features", "check", "bans", "licenses", "sources"];

fn by_cargo() -> [(&'static str, Command); 4] {
    let everything = ["--workspace", "--all-features"];
    let clippy = ["--all-targets", "--", "-D", "warnings"];
    let mut docs = cargo(["doc", "--no-deps"].iter().chain(&everything));
    docs.env("RUSTDOCFLAGS", "-D warnings");
    [
        ("fmt", cargo(["fmt", "--all", "--check"])),
        ("clippy", cargo(["clippy"].iter().chain(&everything).chain(&clippy))),
        ("docs", docs),
        // Compiled, and run where they need nothing.
        ("book", cargo(["test", "-p", "lease-examples", "--doc"])),
    ]
}

fn is_tidy() -> anyhow::Result<bool> {
    let findings = tidy::findings()?;
    for finding in &findings {
        note(finding);
    }
    Ok(findings.is_empty())
}

fn check(report: &mut Report, name: &str, run: impl FnOnce() -> anyhow::Result<bool>) {
    let watch = Stopwatch::start();
    let result = run();
    let word = if matches!(result, Ok(true)) { "ok" } else { "FAILED" };
    report.row([json!(name), json!(word), watch.seconds()]);
    match result {
        Ok(true) => {}
        Ok(false) => report.miss(format!("{name}: see above")),
        Err(error) => report.miss(format!("{name}: {error:#}")),
    }
}

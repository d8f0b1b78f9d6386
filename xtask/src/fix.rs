//! `fix`: what a machine can put right, it does.

use serde_json::json;

use crate::report::Report;
use crate::run::{self, Stopwatch, cargo};

const CLIPPY: [&str; 7] = [
    "clippy",
    "--fix",
    "--allow-dirty",
    "--allow-staged",
    "--workspace",
    "--all-targets",
    "--all-features",
];

/// Clippy first: what it rewrites is formatted after.
pub(crate) fn run() -> anyhow::Result<Report> {
    let mut report = Report::new(&["fix", "result", "seconds"]);
    for (name, args) in [("clippy", &CLIPPY[..]), ("fmt", &["fmt", "--all"][..])] {
        let watch = Stopwatch::start();
        let ok = run::succeeds(&mut cargo(args))?;
        report.row([json!(name), json!(if ok { "ok" } else { "FAILED" }), watch.seconds()]);
        if !ok {
            report.miss(format!("{name} could not put everything right"));
        }
    }
    Ok(report)
}

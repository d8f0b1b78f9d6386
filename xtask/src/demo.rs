//! `demo`: `lease demo` on a real PostgreSQL, with the figures judged.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, bail};
use lease_testkit::servers::{Postgres, Settings};
use serde_json::Value;

use crate::report::{Report, note};
use crate::run::{cargo, shown};
use crate::test;

/// How much longer than its ttl a takeover may take.
const LATE_MS: u64 = 1_000;
/// How long until a lease that was released is noticed.
const HANDOVER_MS: u64 = 2_000;

/// What `demo` can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Installs what is missing on a Debian machine, as root.
    #[arg(long)]
    install: bool,
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    test::prepared(args.install)?;
    let server = Postgres::private(&Settings::default())?;
    let database = server.database()?;
    let folder = tempfile::tempdir()?;
    let url = folder.path().join("url");
    fs::write(&url, database.url())?;
    let mut demo = cargo([
        "run",
        "--quiet",
        "--package",
        "lease-cli",
        "--",
        "demo",
        "--json",
        "--url-file",
    ]);
    demo.arg(&url).stderr(Stdio::inherit());
    note(format_args!("$ {}: a quarter of a minute", shown(&demo)));
    // Also when it saw something wrong, it says what.
    let output = demo
        .output()
        .with_context(|| format!("cannot start {}", shown(&demo)))?;
    let Ok(seen) = serde_json::from_slice::<Value>(&output.stdout) else {
        bail!("failed: {}", shown(&demo));
    };
    Ok(judged(&seen, output.status.success()))
}

fn judged(seen: &Value, is_content: bool) -> Report {
    const FIGURES: [&str; 7] = [
        "ttl_ms",
        "takeover_after_kill_ms",
        "takeover_after_pause_ms",
        "handover_after_end_ms",
        "tokens",
        "refused_writes",
        "overlaps",
    ];
    let mut report = Report::new(&["at_ms", "pod", "what", "token"]);
    for event in seen["events"].as_array().into_iter().flatten() {
        report.row(["at_ms", "pod", "what", "token"].map(|column| event[column].clone()));
    }
    for name in FIGURES {
        report.fact(name, seen[name].clone());
    }
    let figure = |name: &str| seen[name].as_u64().unwrap_or(u64::MAX);
    if !is_content || figure("overlaps") != 0 {
        report.miss("two worked at once, or the fencing tokens did not grow");
    }
    let aim = figure("ttl_ms").saturating_add(LATE_MS);
    if figure("takeover_after_kill_ms") > aim || figure("takeover_after_pause_ms") > aim {
        report.miss("a takeover took longer than the ttl and a second");
    }
    if figure("handover_after_end_ms") > HANDOVER_MS {
        report.miss("the release was not noticed within two seconds");
    }
    report
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_aim_can_be_missed() {
        let seen = json!({
            "ttl_ms": 2_000, "takeover_after_kill_ms": 1_900, "takeover_after_pause_ms": 2_900,
            "handover_after_end_ms": 300, "tokens": [1, 2], "refused_writes": 1, "overlaps": 0,
            "events": [{ "at_ms": 1, "pod": "pod-1", "what": "waits", "token": null }],
        });
        let misses = |seen: &Value, is_content| judged(seen, is_content).to_json()["missed"].as_array().map(Vec::len);
        assert_eq!(misses(&seen, true), Some(0));
        assert_eq!(misses(&seen, false), Some(1));
        for (figure, value) in [
            ("overlaps", 1),
            ("takeover_after_pause_ms", 3_001),
            ("handover_after_end_ms", 2_001),
        ] {
            let mut worse = seen.clone();
            worse[figure] = json!(value);
            assert_eq!(misses(&worse, true), Some(1), "{figure}");
        }
        assert_eq!(misses(&json!({}), true), Some(2));
    }
}

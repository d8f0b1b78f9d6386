//! What a world was, as one JSON object, and the lines that it rests on beside it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use crate::check::{Findings, Incident, Seen};
use crate::engine::Engine;
use crate::fault::{Kind, Scope};
use crate::world::recovery_limit;

/// What a kind of fault did.
#[derive(Debug, Serialize)]
struct Line {
    kind: Kind,
    scope: Scope,
    faults: usize,
    /// That it explains.
    overlaps: usize,
    slowest_recovery_ms: Option<u64>,
}

/// Prints it, and writes the faults and incidents to files.
#[expect(clippy::print_stdout, reason = "the one answer of the program")]
pub(crate) fn print(
    out: &Path,
    engine: Engine,
    seed: u64,
    seconds: u64,
    looks: usize,
    seen: &Seen,
    findings: &Findings,
) -> anyhow::Result<()> {
    std::fs::write(out.join("faults.json"), serde_json::to_vec(&seen.struck)?)?;
    std::fs::write(out.join("findings.json"), serde_json::to_vec_pretty(findings)?)?;
    let mut kinds: BTreeMap<Kind, Line> = BTreeMap::new();
    for struck in &seen.struck {
        let kind = struck.kind;
        let line = kinds.entry(kind).or_insert_with(|| Line {
            kind,
            scope: kind.scope(),
            faults: 0,
            overlaps: findings
                .overlaps
                .iter()
                .filter(|overlap| overlap.outside == Some(kind))
                .count(),
            slowest_recovery_ms: Some(0),
        });
        line.faults += 1;
        line.slowest_recovery_ms = line.slowest_recovery_ms.zip(struck.recovered_ms).map(|(a, b)| a.max(b));
    }
    let limit = u64::try_from(recovery_limit().as_millis()).expect("a short ttl");
    let late = seen
        .struck
        .iter()
        .filter(|struck| struck.recovered_ms.is_none_or(|ms| ms > limit));
    let late: Vec<_> = late.collect();
    let journal: usize = seen.journal.values().map(Vec::len).sum();
    let within = |incidents: &[Incident]| -> Vec<Incident> {
        incidents
            .iter()
            .filter(|incident| incident.outside.is_none())
            .cloned()
            .collect()
    };
    let answer = json!({
        "engine": engine,
        "seed": seed,
        "seconds": seconds,
        "faults": seen.struck.len(),
        "tenures": findings.tenures,
        "looks_at_rows": looks,
        "overlaps_within": within(&findings.overlaps),
        "overlaps_outside": findings.overlaps.iter().filter(|overlap| overlap.outside.is_some()).count(),
        "token_order_within": within(&findings.tokens),
        "stuck_within": within(&findings.stuck),
        "writes_accepted": findings.writes.accepted,
        "writes_refused": findings.writes.refused,
        "writes_unknown": findings.writes.unknown,
        "writes_stale": findings.writes.stale,
        "stale_passed": within(&findings.writes.passed),
        "stale_passed_lost_commits": findings.writes.passed.iter().filter(|passed| passed.outside.is_some()).count(),
        "journal": journal,
        "late": late,
        "kinds": kinds.into_values().collect::<Vec<_>>(),
    });
    println!("{answer}");
    Ok(())
}

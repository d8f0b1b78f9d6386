//! What the worlds' answers are held against.

use serde_json::{Value, json};

use super::{Engine, word};
use crate::report::Report;

/// What must not happen within the assumptions, and what it is called.
const NEVER: [(&str, &str); 5] = [
    ("overlaps_within", "two at work at once within the assumptions"),
    ("token_order_within", "a token that did not grow"),
    ("stale_passed", "a stale write that passed the fence"),
    (
        "stuck_within",
        "a row that stayed live for longer than the ttl and a second",
    ),
    ("late", "a fault after which a pod was not at work within two ttl"),
];

/// What is added up over the worlds.
const SUMS: [&str; 10] = [
    "faults",
    "tenures",
    "overlaps_outside",
    "writes_accepted",
    "writes_refused",
    "writes_unknown",
    "writes_stale",
    "stale_passed_lost_commits",
    "journal",
    "looks_at_rows",
];

/// An empty table.
pub(super) fn table() -> Report {
    Report::new(&["engine", "fault", "assumptions", "faults", "overlaps", "slowest ms"])
}

/// One line for each kind of fault, and the sums.
pub(super) fn worlds(report: &mut Report, worlds: &[(Engine, anyhow::Result<Value>)]) {
    let mut sums = SUMS.map(|_| 0);
    for (engine, seen) in worlds {
        let engine = word(engine);
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                report.miss(format!("{engine}: {error:#}"));
                continue;
            }
        };
        for kind in list(&seen["kinds"]) {
            report.row([
                json!(engine),
                kind["kind"].clone(),
                kind["scope"].clone(),
                kind["faults"].clone(),
                kind["overlaps"].clone(),
                kind["slowest_recovery_ms"].clone(),
            ]);
        }
        for (sum, name) in sums.iter_mut().zip(SUMS) {
            *sum += seen[name].as_u64().unwrap_or(0);
        }
        for (name, what) in NEVER {
            // An answer without the list is no answer.
            match seen[name].as_array() {
                Some(found) if found.is_empty() => {}
                Some(found) => report.miss(format!("{engine}: {what}: {} times, first {}", found.len(), found[0])),
                None => report.miss(format!("{engine}: nothing is said of {name}")),
            }
        }
        for name in ["faults", "tenures", "writes_refused", "looks_at_rows"] {
            if seen[name].as_u64().unwrap_or(0) == 0 {
                report.miss(format!("{engine}: nothing was tried: {name} is 0"));
            }
        }
    }
    for (sum, name) in sums.into_iter().zip(SUMS) {
        report.fact(name, sum);
    }
}

/// A broken rule that the checker did not notice.
pub(super) fn mutant(report: &mut Report, name: &str, seen: Option<&anyhow::Result<Value>>) {
    let seen = match seen {
        Some(Ok(seen)) => seen,
        Some(Err(error)) => return report.miss(format!("{name}: {error:#}")),
        None => return report.miss(format!("{name}: no world was played")),
    };
    let overlaps = list(&seen["overlaps_within"]).len();
    report.row([
        json!("self-check"),
        json!(name),
        json!("within"),
        seen["faults"].clone(),
        json!(overlaps),
        Value::Null,
    ]);
    if overlaps == 0 {
        report.miss(format!("the checker does not notice pods that break a rule: {name}"));
    }
    if !list(&seen["stale_passed"]).is_empty() {
        report.miss(format!(
            "{name}: a stale write passed the fence, which is to hold whatever pods do"
        ));
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Value {
        json!({
            "faults": 2, "tenures": 9, "writes_refused": 3, "looks_at_rows": 40, "overlaps_outside": 1,
            "overlaps_within": [], "token_order_within": [], "stale_passed": [], "stuck_within": [], "late": [],
            "kinds": [{"kind": "pod-frozen", "scope": "outside", "faults": 2, "overlaps": 1, "slowest_recovery_ms": 300}],
        })
    }

    fn misses(seen: Value) -> usize {
        let mut report = table();
        worlds(&mut report, &[(Engine::Postgres, Ok(seen))]);
        list(&report.to_json()["missed"]).len()
    }

    #[test]
    fn each_aim_can_be_missed() {
        assert_eq!(misses(good()), 0);
        for (name, _) in NEVER {
            let mut worse = good();
            worse[name] = json!(["what was seen"]);
            assert_eq!(misses(worse), 1, "{name}");
        }
        let mut idle = good();
        idle["writes_refused"] = json!(0);
        assert_eq!(misses(idle), 1, "a fence that was never asked shows nothing");
        assert_eq!(misses(json!({})), NEVER.len() + 4);
    }

    #[test]
    fn a_world_that_fails_is_a_miss_and_so_is_a_mutant_that_nobody_notices() {
        let mut report = table();
        worlds(&mut report, &[(Engine::Postgres, Err(anyhow::anyhow!("no server")))]);
        mutant(&mut report, "unnoticed", Some(&Ok(good())));
        let mut noticed = good();
        noticed["overlaps_within"] = json!(["two"]);
        mutant(&mut report, "noticed", Some(&Ok(noticed)));
        assert_eq!(list(&report.to_json()["missed"]).len(), 2);
    }
}

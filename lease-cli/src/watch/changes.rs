//! [`Changes`]: a line for each lease that is not as it was.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use lease_core::LeaseRow;
use serde_json::{Value, json};

use crate::answer::Failure;
use crate::rows::{self, printable};
use crate::terminal::say;

/// Leases as they were last seen, and whether changes are told in JSON.
pub(super) struct Changes {
    json: bool,
    last: BTreeMap<String, Seen>,
}

/// What makes a change: not that a renewal has moved the expiry.
type Seen = (&'static str, String, i64);

impl Changes {
    pub(super) fn new(json: bool) -> Self {
        let last = BTreeMap::new();
        Self { json, last }
    }

    /// Tells what is not as it was. False when nobody reads it any more.
    pub(super) fn found(&mut self, rows: &[LeaseRow]) -> Result<bool, Failure> {
        for line in self.lines(rows) {
            if !say(&line)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tells that there is no answer: since when, by this machine's clock and until now, and why.
    pub(super) fn unreachable(&self, (since, time): (SystemTime, Duration), why: &str) -> Result<bool, Failure> {
        if self.json {
            let since = humantime::format_rfc3339_millis(since).to_string();
            return say(&event("unreachable", &json!({ "since": since, "error": why })));
        }
        Ok(complain(&format!("unreachable for {}: {why}", rows::human(time))))
    }

    /// Tells that there is one again.
    pub(super) fn reachable(&self, after: Duration) -> Result<bool, Failure> {
        if self.json {
            let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
            return say(&event("reachable", &json!({ "after_ms": millis })));
        }
        Ok(complain(&format!("reachable again after {}", rows::human(after))))
    }

    fn lines(&mut self, rows: &[LeaseRow]) -> Vec<String> {
        let mut now = BTreeMap::new();
        let mut lines = Vec::new();
        for row in rows {
            let seen = (rows::state(row), row.holder.clone(), row.token);
            if self.last.get(&row.name) != Some(&seen) {
                lines.push(if self.json {
                    event("lease", &json!({ "lease": rows::value(row) }))
                } else {
                    let (state, holder, token) = &seen;
                    format!("{} {state} {} {token}", printable(&row.name), printable(holder))
                });
            }
            now.insert(row.name.clone(), seen);
        }
        let gone = self.last.keys().filter(|name| !now.contains_key(*name));
        lines.extend(gone.map(|name| {
            if self.json {
                event("gone", &json!({ "name": name }))
            } else {
                format!("{} gone - -", printable(name))
            }
        }));
        self.last = now;
        lines
    }
}

fn event(name: &str, more: &Value) -> String {
    let mut object = json!({ "event": name });
    if let (Some(object), Some(more)) = (object.as_object_mut(), more.as_object()) {
        object.extend(more.clone());
    }
    object.to_string()
}

/// On standard error, so that what reads the changes gets changes only.
fn complain(text: &str) -> bool {
    let _ = writeln!(io::stderr(), "lease: {text}");
    true
}

#[cfg(test)]
mod tests {
    use lease_core::{DbTime, RowTimes};

    use super::*;

    fn row(name: &str, holder: &str, token: i64, expires_at: i64) -> LeaseRow {
        let at = DbTime::from_micros;
        let times = RowTimes {
            acquired_at: at(1),
            expires_at: at(expires_at),
            read_at: at(100),
        };
        LeaseRow::new(name.into(), holder.into(), token, times)
    }

    #[test]
    fn a_line_is_a_change_and_a_renewal_is_none() {
        let mut changes = Changes::new(false);
        let (a, b) = (row("a", "pod/1", 7, 200), row("b", "pod/2", 8, 200));
        assert_eq!(changes.lines(&[a, b.clone()]), ["a held pod/1 7", "b held pod/2 8"]);
        assert_eq!(changes.lines(&[row("a", "pod/1", 7, 300), b.clone()]), [""; 0]);
        assert_eq!(changes.lines(&[row("a", "pod/1", 7, 100), b]), ["a free pod/1 7"]);
        assert_eq!(
            changes.lines(&[row("a", "pod/3\u{1b}[2J", 9, 300)]),
            ["a held pod/3\u{fffd}[2J 9", "b gone - -"]
        );
    }

    #[test]
    fn programs_read_an_event_a_line() {
        let mut changes = Changes::new(true);
        let lines = changes.lines(&[row("a", "pod/1", 7, 200)]);
        let event: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(
            (&event["event"], &event["lease"]["token"]),
            (&json!("lease"), &json!(7))
        );
        assert_eq!(changes.lines(&[]), [r#"{"event":"gone","name":"a"}"#]);
    }
}

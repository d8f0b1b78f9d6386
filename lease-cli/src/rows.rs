//! Rows as people read them, and as programs do.

use std::time::{Duration, SystemTime};

use comfy_table::{ContentArrangement, Table, presets};
use lease_core::{DbTime, LeaseRow};
use serde_json::{Value, json};

/// What a row says, in one word.
pub(crate) fn state(row: &LeaseRow) -> &'static str {
    if !row.is_live() {
        "free"
    } else if row.released_at.is_some() {
        "released"
    } else if row.holder.starts_with("pause/") {
        "paused"
    } else if row.holder.starts_with("evict/") {
        "evicted"
    } else {
        "held"
    }
}

/// A table of all.
pub(crate) fn table(rows: &[LeaseRow]) -> String {
    if rows.is_empty() {
        return "no leases".to_owned();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["NAME", "STATE", "UNTIL", "HOLDER", "TOKEN", "NOTE"]);
    for row in rows {
        table.add_row([
            printable(&row.name),
            state(row).to_owned(),
            until(row),
            printable(&row.holder),
            row.token.to_string(),
            row.note.as_deref().map(printable).unwrap_or_default(),
        ]);
    }
    trimmed(&table)
}

/// All there is to say of one.
pub(crate) fn details(row: &LeaseRow) -> String {
    let ago = |time: DbTime| format!("{} ago", span(row.read_at, time));
    let mut lines = vec![
        ("name", printable(&row.name)),
        ("state", state(row).to_owned()),
        ("until", until(row)),
        ("holder", printable(&row.holder)),
        ("token", row.token.to_string()),
    ];
    // Of a pause it is from when on it may be ended, which may be in the future.
    if row.acquired_at <= row.read_at {
        lines.push(("acquired", ago(row.acquired_at)));
    }
    if let Some(released_at) = row.released_at {
        lines.push(("released", ago(released_at)));
    }
    if let Some(note) = &row.note {
        lines.push(("note", printable(note)));
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for (what, value) in lines {
        table.add_row([what, &value]);
    }
    trimmed(&table)
}

/// One row for programs.
pub(crate) fn value(row: &LeaseRow) -> Value {
    json!({
        "name": row.name,
        "state": state(row),
        "holder": row.holder,
        "token": row.token,
        "acquired_at": time(row.acquired_at),
        "expires_at": time(row.expires_at),
        "released_at": row.released_at.map(time),
        "note": row.note,
        "read_at": time(row.read_at),
    })
}

/// A duration as people say it, in whole seconds from a second on.
pub(crate) fn human(duration: Duration) -> String {
    let whole = if duration < Duration::from_secs(1) {
        Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    } else {
        Duration::from_secs(duration.as_secs())
    };
    humantime::format_duration(whole).to_string()
}

fn until(row: &LeaseRow) -> String {
    match row.expires_in() {
        Some(left) => format!("expires in {}", human(left)),
        None => format!("free for {}", span(row.read_at, row.expires_at)),
    }
}

fn span(later: DbTime, earlier: DbTime) -> String {
    let micros = later.as_micros().saturating_sub(earlier.as_micros());
    human(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}

/// RFC 3339 in UTC. What lies outside of the years it has is cut to them.
fn time(time: DbTime) -> String {
    const YEAR_10000_US: i64 = 253_402_300_800_000_000;
    let micros = time.as_micros().clamp(0, YEAR_10000_US - 1);
    humantime::format_rfc3339_micros(SystemTime::from(DbTime::from_micros(micros))).to_string()
}

/// No text of a row can move a terminal's cursor.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Without the space that fills the last column and stands before the first.
fn trimmed(table: &Table) -> String {
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned())
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use lease_core::RowTimes;

    use super::*;

    fn row(holder: &str, expires_at: i64, released_at: Option<i64>) -> LeaseRow {
        let at = DbTime::from_micros;
        let times = RowTimes {
            acquired_at: at(1_000_000),
            expires_at: at(expires_at),
            read_at: at(100_000_000),
        };
        let mut row = LeaseRow::new("job".into(), holder.into(), 7, times);
        row.released_at = released_at.map(at);
        row
    }

    #[test]
    fn each_state_has_its_word() {
        for (holder, expires_at, released_at, word) in [
            ("pod/1", 141_000_000, None, "held"),
            ("pod/1", 141_000_000, Some(5), "released"),
            ("pause/ops", 141_000_000, None, "paused"),
            ("evict/ops", 141_000_000, None, "evicted"),
            ("pod/1", 100_000_000, None, "free"),
            ("pause/ops", 1, Some(1), "free"),
        ] {
            assert_eq!(state(&row(holder, expires_at, released_at)), word);
        }
    }

    #[test]
    fn people_read_relative_times_and_programs_rfc_3339() {
        let held = row("pod/1", 141_900_000, None);
        assert_eq!(until(&held), "expires in 41s");
        assert_eq!(until(&row("pod/1", 40_000_000, None)), "free for 1m");
        assert_eq!(value(&held)["expires_at"], "1970-01-01T00:02:21.900000Z");
        let far = row("pod/1", i64::MAX, None);
        assert_eq!(value(&far)["expires_at"], "9999-12-31T23:59:59.999999Z");
        assert_eq!(
            value(&row("pod/1", i64::MIN, None))["expires_at"],
            "1970-01-01T00:00:00.000000Z"
        );
        assert_eq!(human(Duration::from_micros(1_500)), "1ms");
    }

    #[test]
    fn a_text_of_a_row_moves_no_cursor() {
        let mut evil = row("pod\u{1b}[2J", 141_000_000, None);
        evil.note = Some("a\nb".into());
        assert!(!table(&[evil.clone()]).contains('\u{1b}'));
        assert_eq!(table(&[evil]).lines().count(), 2);
    }
}

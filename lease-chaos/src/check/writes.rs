//! Writes: none may pass the fence under a token that is not the greatest.

use std::collections::HashMap;

use serde::Serialize;

use super::{Incident, Seen, excuse};
use crate::line::{Answer, Did};

/// What became of the writes.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Writes {
    pub(crate) accepted: usize,
    /// By the fence.
    pub(crate) refused: usize,
    /// Not known whether they were committed.
    pub(crate) unknown: usize,
    /// Begun when a greater token was known, whatever became of them.
    pub(crate) stale: usize,
    /// Of these, accepted; and those that stand in the journal behind a greater token.
    pub(crate) passed: Vec<Incident>,
}

pub(super) fn judge(seen: &Seen) -> Writes {
    let known = Known::of(seen);
    let mut writes = Writes::default();
    for line in seen.pods.iter().flatten() {
        let Did::Write { from, answer, .. } = line.did else {
            continue;
        };
        match answer {
            Answer::Accepted => writes.accepted += 1,
            Answer::Refused => writes.refused += 1,
            Answer::Error => writes.unknown += 1,
        }
        let greatest = known.before(&line.name, from);
        if greatest <= line.token {
            continue;
        }
        writes.stale += 1;
        if answer == Answer::Accepted {
            writes.passed.push(Incident {
                what: format!(
                    "{}: a write under token {} after token {greatest}",
                    line.name, line.token
                ),
                at: from,
                outside: excuse::of_lost_commits(&seen.struck, from),
            });
        }
    }
    for (name, tokens) in &seen.journal {
        let mut greatest = i64::MIN;
        for (place, token) in tokens.iter().enumerate() {
            if *token < greatest {
                writes.passed.push(Incident {
                    what: format!(
                        "{name}: write {place} of the journal is under token {token}, behind token {greatest}"
                    ),
                    at: 0,
                    outside: None,
                });
            }
            greatest = greatest.max(*token);
        }
    }
    writes
}

/// The greatest token of each lease that the fence must know of, at each time.
struct Known(HashMap<String, Vec<(u64, i64)>>);

impl Known {
    /// A row's fence knows a token from its grant on, and so from its first poll; a column's from the first write under it on.
    fn of(seen: &Seen) -> Self {
        let mut names: HashMap<String, Vec<(u64, i64)>> = HashMap::new();
        for line in seen.pods.iter().flatten() {
            let at = match line.did {
                Did::Enter { at } if !seen.fence_is_a_column => at,
                Did::Write {
                    to,
                    answer: Answer::Accepted,
                    ..
                } => to,
                _ => continue,
            };
            names.entry(line.name.clone()).or_default().push((at, line.token));
        }
        for events in names.values_mut() {
            events.sort_unstable();
            let mut greatest = i64::MIN;
            for (_, token) in events {
                greatest = greatest.max(*token);
                *token = greatest;
            }
        }
        Self(names)
    }

    /// Before this time; the smallest number if none.
    fn before(&self, name: &str, at: u64) -> i64 {
        let Some(events) = self.0.get(name) else {
            return i64::MIN;
        };
        let earlier = events.partition_point(|(when, _)| *when < at);
        earlier.checked_sub(1).map_or(i64::MIN, |last| events[last].1)
    }
}

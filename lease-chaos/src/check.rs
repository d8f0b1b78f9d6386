//! The checker: what the pods wrote down, held against what was promised.

mod excuse;
mod spans;
mod writes;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::fault::Kind;
use crate::line::Line;
use crate::sampler::Stuck;
pub(crate) use excuse::Struck;
use spans::{Span, spans};
pub(crate) use writes::Writes;

/// All that was seen of a world.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// What each pod wrote down.
    pub(crate) pods: Vec<Vec<Line>>,
    /// When which process was dead.
    pub(crate) deaths: HashMap<u32, u64>,
    pub(crate) struck: Vec<Struck>,
    /// The tokens of each lease's writes in the order of their commits.
    pub(crate) journal: BTreeMap<String, Vec<i64>>,
    pub(crate) stuck: Vec<Stuck>,
    /// Whether only what is written to has the token, and refuses a smaller one: on a cluster.
    pub(crate) fence_is_a_column: bool,
}

/// Something that must not happen while the assumptions hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Incident {
    /// What, in words.
    pub(crate) what: String,
    /// When, in nanoseconds.
    pub(crate) at: u64,
    /// The fault outside of the assumptions that explains it.
    pub(crate) outside: Option<Kind>,
}

/// What the checker found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Findings {
    pub(crate) tenures: usize,
    pub(crate) overlaps: Vec<Incident>,
    /// Tokens that did not grow from tenure to tenure.
    pub(crate) tokens: Vec<Incident>,
    pub(crate) stuck: Vec<Incident>,
    pub(crate) writes: Writes,
}

/// Judges.
pub(crate) fn check(seen: &Seen) -> Findings {
    let all = spans(&seen.pods, &seen.deaths);
    let mut names: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    for span in &all {
        names.entry(&span.name).or_default().push(span);
    }
    let mut findings = Findings {
        tenures: all.len(),
        writes: writes::judge(seen),
        ..Findings::default()
    };
    for spans in names.values_mut() {
        spans.sort_by_key(|span| (span.enter, span.token));
        in_order(seen, spans, &mut findings);
    }
    for row in &seen.stuck {
        findings.stuck.push(Incident {
            what: format!("row {:?} stayed live", row.row),
            at: row.to,
            outside: excuse::of_all(&seen.struck, row.from, row.to),
        });
    }
    findings
}

/// Of one lease's tenures, in the order of entering.
fn in_order(seen: &Seen, spans: &[&Span], findings: &mut Findings) {
    let mut last_out: Option<&Span> = None;
    let mut greatest: Option<&Span> = None;
    for span in spans {
        if let Some(inside) = last_out.filter(|inside| span.enter < inside.leave) {
            findings.overlaps.push(Incident {
                what: format!(
                    "{}: {} entered under token {} while {} was inside under token {}, for {} ms",
                    span.name,
                    span.who(),
                    span.token,
                    inside.who(),
                    inside.token,
                    (inside.leave.min(span.leave) - span.enter) / 1_000_000,
                ),
                at: span.enter,
                outside: excuse::of_pods(&seen.struck, span.enter, [span.pod, inside.pod]),
            });
        }
        if let Some(before) = greatest.filter(|before| span.token <= before.token) {
            findings.tokens.push(Incident {
                what: format!("{}: token {} after token {}", span.name, span.token, before.token),
                at: span.enter,
                outside: excuse::of_pods(&seen.struck, span.enter, [span.pod, before.pod]),
            });
        }
        if last_out.is_none_or(|last| span.leave >= last.leave) {
            last_out = Some(span);
        }
        if greatest.is_none_or(|greatest| span.token > greatest.token) {
            greatest = Some(span);
        }
    }
}

#[cfg(test)]
mod tests;

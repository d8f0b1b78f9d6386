//! A renewal or a release changes only the row of its own holder, and by the laws: a renewal never revives (L3), a
//! release keeps the minimum that stands in it and no more (L4).

use super::{Check, Facts, violated};
use crate::sim::seen::{Answer, Executed, RowSeen, Statement, What};

pub(super) fn check(facts: &Facts<'_>) -> Check {
    for (at, what) in facts.seen() {
        if let What::Executed(executed) = what
            && let Err(how) = judge(executed)
        {
            return violated(at, how);
        }
    }
    Ok(())
}

fn judge(executed: &Executed) -> Result<(), String> {
    let Executed {
        sent,
        before,
        after,
        answer,
        ..
    } = executed;
    let others = before.iter().zip(after).enumerate();
    for (name, (before, after)) in others {
        if name != sent.name && before != after {
            return Err(format!(
                "{:?} of another name made {before:?} {after:?}",
                sent.statement
            ));
        }
    }
    let (before, after) = (before[sent.name], after[sent.name]);
    let (expected, succeeds) = match sent.statement {
        Statement::Acquire => return Ok(()),
        Statement::Renew => (renewed(executed, before), Answer::Renewed),
        Statement::Release => (released(executed, before), Answer::Released),
    };
    let wrong = after != expected.or(before) || expected.is_some() != (*answer == succeeds);
    if wrong {
        let (holder, now) = (sent.holder, executed.now);
        return Err(format!(
            "h{holder} {:?} at {now}: {before:?} became {after:?}, and the answer was {answer:?}",
            sent.statement
        ));
    }
    Ok(())
}

/// The row after a renewal that matches.
fn renewed(executed: &Executed, row: Option<RowSeen>) -> Option<RowSeen> {
    let now = executed.now;
    let mut row = row.filter(|row| row.is_of(executed.sent.holder) && row.is_live(now) && row.released_at.is_none())?;
    row.expires_at = row.expires_at.max(now + executed.ttl);
    Some(row)
}

/// The row after a release that matches.
fn released(executed: &Executed, row: Option<RowSeen>) -> Option<RowSeen> {
    let now = executed.now;
    let mut row = row.filter(|row| row.is_of(executed.sent.holder) && row.released_at.is_none())?;
    row.released_at = Some(now);
    if row.is_live(now) {
        row.expires_at = now.max(row.acquired_at + executed.sent.at_least_for);
    }
    Some(row)
}

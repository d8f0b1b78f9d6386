//! The store grants what is free and nothing else (law L1), and its tokens grow over every grant that is no retry (L2).
//!
//! A grant is a retry if its own holder's live and unreleased row stands there. A retry keeps token and `acquired_at`.

use super::{Check, Facts, violated};
use crate::sim::seen::{Answer, Executed, MOST_NAMES, RowSeen, Rows, Statement, What, Who};

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let mut greatest = [0; MOST_NAMES];
    for (at, what) in facts.seen() {
        match what {
            What::Executed(executed) if executed.sent.statement == Statement::Acquire => {
                if let Err(how) = acquire(executed, greatest[executed.sent.name]) {
                    return violated(at, how);
                }
                raise(&mut greatest, &executed.after);
            }
            What::Operator { after, .. } => raise(&mut greatest, after),
            _ => {}
        }
    }
    Ok(())
}

fn raise(greatest: &mut [i64; MOST_NAMES], rows: &Rows) {
    for (greatest, row) in greatest.iter_mut().zip(rows) {
        *greatest = row.map_or(0, |row| row.token).max(*greatest);
    }
}

fn acquire(executed: &Executed, greatest: i64) -> Result<(), String> {
    let Executed {
        sent,
        now,
        ttl,
        before,
        after,
        answer,
        ..
    } = executed;
    let (before, after) = (before[sent.name], after[sent.name]);
    let own = before.filter(|row| row.is_live(*now) && row.is_of(sent.holder) && row.released_at.is_none());
    let is_free = before.is_none_or(|row| !row.is_live(*now));
    match (answer, after) {
        (Answer::Granted(token), Some(row)) if is_free || own.is_some() => {
            let expected = RowSeen {
                who: Who::Holder(sent.holder),
                token: own.map_or(*token, |own| own.token),
                acquired_at: own.map_or(*now, |own| own.acquired_at),
                expires_at: own.map_or(0, |own| own.expires_at).max(now + ttl),
                released_at: None,
            };
            if row != expected || row.token != *token {
                return Err(format!(
                    "a grant of {token} at {now} over {before:?} made {row:?}, not {expected:?}"
                ));
            }
            if is_free && *token <= greatest {
                return Err(format!("a grant of {token} after {greatest}"));
            }
            Ok(())
        }
        (Answer::Busy, _) if !is_free && own.is_none() && before == after => Ok(()),
        _ => Err(format!("h{} was told {answer:?} over {before:?} at {now}", sent.holder)),
    }
}

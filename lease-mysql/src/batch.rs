//! [`RenewingAll`]: many renewals in one statement.

use std::fmt::Write;

use lease_core::{Claim, Loss, Operation, Renew, RepoError, RepoErrorKind};
use lease_diesel::{Failure, Subject, Task, text};

use crate::engine::{Mysql, Session};
use crate::row::Row;
use crate::sql::{self, Value::Text};
use crate::value::span;

/// The renewals of several leases, at most a thousand. No lock is waited for.
///
/// If the update found them all, that is all. Else a look says which are lost. Of those that are still held, one that lives as long as it
/// was to is renewed; the others are updated and looked at once more, and what was not renewed then is locked by somebody.
pub(crate) struct RenewingAll(pub(crate) Vec<Claim>);

type Answer = Result<Renew, RepoError>;

/// What [`sql::PeekAll`] answers with.
type Found = (i64, Option<i64>, Option<Vec<u8>>, Option<i64>, i64, i64);

impl Task<Mysql> for RenewingAll {
    type Answer = Vec<Answer>;

    fn subject(&self) -> Subject {
        Subject::new(Operation::Renew)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Vec<Answer>, Failure> {
        let mut answers: Vec<Answer> = vec![Ok(Renew::Lost(Loss::Gone)); self.0.len()];
        let mut asked: Vec<usize> = (0..self.0.len()).collect();
        // The server's clock at a time before the update.
        let mut before = None;
        while !asked.is_empty() {
            let list = self.list(&asked);
            if session.execute(sql::RenewAll, &[Text(&list)]).await? >= asked.len() {
                for at in asked {
                    answers[at] = Ok(Renew::Renewed);
                }
                break;
            }
            let mut again = Vec::new();
            let found: Vec<Found> = session.rows(sql::PeekAll, &[Text(&list)]).await?;
            let seen_at = found.first().map(|(.., now)| *now);
            for (n, token, holder, expires_us, released, now) in found {
                let place = usize::try_from(n).ok().and_then(|n| asked.get(n.checked_sub(1)?));
                let Some(&at) = place else { continue };
                let left_us = expires_us.map(|expires_us| expires_us.saturating_sub(now));
                let row = Row::new(token, holder, left_us, released);
                let lives_on = expires_us >= Some(before.unwrap_or(now) + span(self.0[at].ttl));
                answers[at] = match self.loss(at, row) {
                    Some(lost) => lost,
                    None if lives_on => Ok(Renew::Renewed),
                    None => {
                        again.push(at);
                        Err(self.locked(at))
                    }
                };
            }
            if before.is_some() {
                break;
            }
            before = seen_at;
            asked = again;
        }
        Ok(answers)
    }
}

impl RenewingAll {
    /// Claims as the statements take them.
    fn list(&self, which: &[usize]) -> String {
        let mut list = String::from("[");
        for (n, at) in which.iter().enumerate() {
            let Claim { name, holder, ttl, .. } = &self.0[*at];
            let comma = if n == 0 { "" } else { "," };
            let (name, holder) = (hex(name.as_str()), hex(holder.as_str()));
            // Writing to a string can't fail.
            let _ = write!(list, r#"{comma}["{name}","{holder}",{}]"#, span(*ttl));
        }
        list.push(']');
        list
    }

    /// What a row says of a claim; `None` if it is the claim's, live and not released. A row of `None` has a null in it.
    fn loss(&self, at: usize, row: Option<Row>) -> Option<Answer> {
        let claim = &self.0[at];
        match row {
            None => Some(Err(Row::error(&Subject::of(Operation::Renew, &claim.name)))),
            Some(row) if row.is_held_by(&claim.holder) => None,
            Some(row) => Some(Ok(Renew::Lost(row.loss(&claim.holder)))),
        }
    }

    fn locked(&self, at: usize) -> RepoError {
        let error = Subject::of(Operation::Renew, &self.0[at].name).error(RepoErrorKind::Conflict);
        error.with_source(text("the row is locked")).never_executed()
    }
}

fn hex(text: &str) -> String {
    text.bytes()
        .fold(String::with_capacity(text.len() * 2), |mut digits, byte| {
            // Writing to a string can't fail.
            let _ = write!(digits, "{byte:02x}");
            digits
        })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lease_core::{Label, LeaseName};

    use super::*;

    #[test]
    fn names_and_holders_travel_as_digits_so_that_none_can_end_the_list() {
        let claim = |name: &str| {
            let holder = Label::new("pod").unwrap().new_holder();
            Claim::new(LeaseName::new(name).unwrap(), holder, Duration::from_secs(30))
        };
        let task = RenewingAll(vec![claim("a"), claim("\"],[\"\u{e9}"), claim("c")]);
        let asked = task.list(&[1, 2]);
        assert!(asked.starts_with(r#"[["225d2c5b22c3a9","706f642f"#), "{asked}");
        assert!(
            asked.contains(r#",30000000],["63","706f642f"#) && asked.ends_with(",30000000]]"),
            "{asked}"
        );
    }
}

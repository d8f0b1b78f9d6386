//! The laws as plain functions of rows and a time: no clock, no lock, no await.
//!
//! A model checker can hold it, and `lease-testkit` breaks one rule at a time to prove its cases.

use std::collections::BTreeMap;
use std::time::Duration;

use super::mutant::Mutant;
use crate::{Acquire, Claim, Incumbent, LeaseName, Loss, Release, Renew, Token};

mod operator;
mod rules;

use rules::Rules;

/// A row of `task_leases`. Times are microseconds since 1970-01-01 UTC by the store's clock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Row {
    /// Who was granted it last.
    pub holder: String,
    /// The fencing token of that grant.
    pub token: i64,
    /// When it was granted.
    pub acquired_at: i64,
    /// From when on it is free.
    pub expires_at: i64,
    /// When it was released.
    pub released_at: Option<i64>,
    /// What an operator wrote.
    pub note: Option<String>,
}

impl Row {
    /// A row as a grant leaves it, with neither release nor note; both fields are public. Times are microseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn new(holder: impl Into<String>, token: i64, acquired_at: i64, expires_at: i64) -> Self {
        Self {
            holder: holder.into(),
            token,
            acquired_at,
            expires_at,
            released_at: None,
            note: None,
        }
    }
}

/// All rows, and the laws that change them.
///
/// For a backend that can read a row, decide, and write it back with nobody in between: [`insert`](Self::insert) the row that was
/// read, let a law decide, and write what [`rows`](Self::rows) then has. `now` is the store's own clock, in microseconds since
/// 1970-01-01 UTC. `docs/new-backend.md` in the repository does so.
///
/// ```
/// use std::time::Duration;
/// use lease_core::{Acquire, Claim, Label, LeaseName, Row, Rows};
///
/// let name = LeaseName::from_static("nightly");
/// let mut rows = Rows::default();
/// rows.insert(&name, Row::new("pod-1/5d0c", 7, 1_000, 2_000));
/// let claim = Claim::new(name.clone(), Label::of_this_process().new_holder(), Duration::from_secs(60));
/// assert!(matches!(rows.acquire(&claim, 1_999), Acquire::Busy(Some(_))));
/// assert!(matches!(rows.acquire(&claim, 2_000), Acquire::Granted(_)));
/// assert_eq!(rows.rows()[name.as_str()].expires_at, 60_002_000);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Rows {
    rows: BTreeMap<String, Row>,
    rules: Rules,
}

impl Rows {
    /// The rows by name.
    #[must_use]
    pub fn rows(&self) -> &BTreeMap<String, Row> {
        &self.rows
    }

    /// Puts a row there as it is, in place of the one that was there.
    pub fn insert(&mut self, name: &LeaseName, row: Row) {
        self.rows.insert(name.as_str().to_owned(), row);
    }

    /// Deletes a row by hand.
    pub fn delete(&mut self, name: &LeaseName) {
        self.rows.remove(name.as_str());
    }

    /// Laws L1 and L2.
    pub fn acquire(&mut self, claim: &Claim, now: i64) -> Acquire {
        let rules = self.rules;
        let key = rules.key(&self.rows, &claim.name);
        let expires_at = now.saturating_add(rules.extent(claim));
        let token = match self.rows.get_mut(&key) {
            None => rules.first_token(now),
            Some(row) if rules.is_free(row, now) => {
                let revives = rules.breaks(Mutant::RetryAfterExpiry) && rules.is_ours(row, claim);
                if revives {
                    row.token
                } else {
                    rules.next_token(row.token, now)
                }
            }
            Some(row) if rules.is_ours(row, claim) && rules.may_retry(row) => {
                return retry(rules, row, expires_at, now);
            }
            Some(row) if rules.breaks(Mutant::ForgetsTheHolder) => rules.next_token(row.token, now),
            Some(_) if rules.breaks(Mutant::BusyIsSilent) => return Acquire::Busy(None),
            Some(row) => return Acquire::Busy(Some(incumbent(row, now))),
        };
        let mut row = Row {
            holder: claim.holder.as_str().to_owned(),
            token,
            acquired_at: now,
            expires_at,
            released_at: None,
            note: None,
        };
        if let Some(old) = self.rows.get(&key) {
            if rules.breaks(Mutant::GrantKeepsReleasedAt) {
                row.released_at = old.released_at;
            }
            if rules.breaks(Mutant::GrantKeepsNote) {
                row.note.clone_from(&old.note);
            }
            if rules.breaks(Mutant::GrantKeepsAcquiredAt) {
                row.acquired_at = old.acquired_at;
            }
        }
        if rules.breaks(Mutant::TakesEveryExpiredRow) {
            let expired = self.rows.values_mut().filter(|other| other.expires_at <= now);
            expired.for_each(|other| *other = row.clone());
        }
        self.rows.insert(key, row);
        granted(token)
    }

    /// Law L3.
    pub fn renew(&mut self, claim: &Claim, now: i64) -> Renew {
        let rules = self.rules;
        let key = rules.key(&self.rows, &claim.name);
        let extended = now.saturating_add(rules.extent(claim));
        if rules.breaks(Mutant::RenewCreatesTheRow) && !self.rows.contains_key(&key) {
            self.acquire(claim, now);
        }
        if rules.breaks(Mutant::RenewsEveryRow) {
            let theirs = self.rows.values_mut().filter(|row| rules.is_ours(row, claim));
            theirs.for_each(|row| row.expires_at = row.expires_at.max(extended));
        }
        let Some(row) = self.rows.get_mut(&key) else {
            return Renew::Lost(Loss::Gone);
        };
        let ours = rules.is_ours(row, claim) || rules.breaks(Mutant::RenewIgnoresTheHolder);
        let live = rules.is_live(row, now) || rules.breaks(Mutant::RenewRevives);
        let unreleased = row.released_at.is_none() || rules.breaks(Mutant::RenewAfterRelease);
        if ours && live && unreleased {
            extend(rules, row, extended, now);
            return Renew::Renewed;
        }
        if rules.breaks(Mutant::LossIsAlwaysGone) {
            return Renew::Lost(Loss::Gone);
        }
        let released = row.released_at.is_some();
        Renew::Lost(Loss::of_row(&row.holder, &claim.holder, released, expires_in(row, now)))
    }

    /// Law L4.
    pub fn release(&mut self, claim: &Claim, now: i64) -> Release {
        let rules = self.rules;
        let key = rules.key(&self.rows, &claim.name);
        if rules.breaks(Mutant::ReleasesEveryRow) {
            let theirs = self.rows.values_mut().filter(|row| rules.is_ours(row, claim));
            theirs.for_each(|row| row.expires_at = row.expires_at.min(now));
        }
        let not_held = if rules.breaks(Mutant::ReleaseNeverLooks) {
            Release::Released
        } else {
            Release::NotHeld
        };
        let Some(row) = self.rows.get_mut(&key) else {
            return not_held;
        };
        let ours = rules.is_ours(row, claim) || rules.breaks(Mutant::ReleaseIgnoresTheHolder);
        if !ours || (row.released_at.is_some() && !rules.breaks(Mutant::ReleasesTwice)) {
            return not_held;
        }
        if rules.breaks(Mutant::ReleaseDeletes) {
            self.rows.remove(&key);
            return Release::Released;
        }
        if !rules.breaks(Mutant::ReleaseLeavesNoMark) {
            row.released_at = Some(now);
        }
        if row.expires_at > now || rules.breaks(Mutant::ReleaseRaisesAnExpiredRow) {
            row.expires_at = free_from(rules, row, claim, now);
        }
        Release::Released
    }

    /// Breaks one rule from now on.
    #[cfg(feature = "mutants")]
    pub fn break_rule(&mut self, mutant: Mutant) {
        self.rules.broken = Some(mutant);
    }

    /// Makes one row what it is in `other`.
    #[cfg(feature = "mutants")]
    pub(super) fn overwrite(&mut self, name: &LeaseName, other: &Self) {
        if let Some(row) = other.rows.get(name.as_str()) {
            self.rows.insert(name.as_str().to_owned(), row.clone());
        }
    }

    /// Whether this rule is broken: for what only the store around the rows can get wrong.
    #[cfg(feature = "mutants")]
    pub(super) fn breaks(&self, rule: Mutant) -> bool {
        self.rules.breaks(rule)
    }
}

/// A repeated try of a live row's own holder: it extends like a renewal.
fn retry(rules: Rules, row: &mut Row, expires_at: i64, now: i64) -> Acquire {
    if rules.breaks(Mutant::RetryShortens) {
        row.expires_at = expires_at;
    } else if !rules.breaks(Mutant::RetryDoesNotExtend) {
        row.expires_at = row.expires_at.max(expires_at);
    }
    if rules.breaks(Mutant::RetryBumpsTheToken) {
        row.token = rules.next_token(row.token, now);
    }
    if rules.breaks(Mutant::RetryMovesAcquiredAt) {
        row.acquired_at = now;
    }
    granted(row.token)
}

fn extend(rules: Rules, row: &mut Row, extended: i64, now: i64) {
    if rules.breaks(Mutant::RenewAddsUp) {
        row.expires_at = row.expires_at.saturating_add(extended.saturating_sub(now));
    } else if rules.breaks(Mutant::RenewShortens) {
        row.expires_at = extended;
    } else if !rules.breaks(Mutant::RenewDoesNotExtend) {
        row.expires_at = row.expires_at.max(extended);
    }
    if rules.breaks(Mutant::RenewBumpsTheToken) {
        row.token = rules.next_token(row.token, now);
    }
    if rules.breaks(Mutant::RenewMovesAcquiredAt) {
        row.acquired_at = now;
    }
}

/// From when on a row that is released now is free.
fn free_from(rules: Rules, row: &Row, claim: &Claim, now: i64) -> i64 {
    let least = if rules.breaks(Mutant::ReleaseIgnoresTheMinimum) {
        0
    } else {
        claim.at_least_for_us()
    };
    let from = if rules.breaks(Mutant::MinimumCountsFromTheRelease) {
        now
    } else {
        row.acquired_at
    };
    let until = now.max(from.saturating_add(least));
    if rules.breaks(Mutant::ReleaseFreesNothing) {
        row.expires_at.max(until)
    } else if rules.breaks(Mutant::MinimumNeverExceedsTheTtl) {
        row.expires_at.min(until)
    } else {
        until
    }
}

fn expires_in(row: &Row, now: i64) -> Option<Duration> {
    u64::try_from(row.expires_at.saturating_sub(now))
        .ok()
        .filter(|left| *left > 0)
        .map(Duration::from_micros)
}

fn incumbent(row: &Row, now: i64) -> Incumbent {
    Incumbent::new(row.holder.clone(), expires_in(row, now).unwrap_or_default())
}

fn granted(token: i64) -> Acquire {
    // A token begins at 1 or later and grows, so `max` changes nothing: it is what makes this never a refusal.
    Token::new(token.max(1)).map_or(Acquire::Busy(None), Acquire::Granted)
}

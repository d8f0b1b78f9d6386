//! The laws as plain functions of rows and a time: no clock, no lock, no await.
//!
//! A model checker can hold it, and `lease-testkit` breaks one rule at a time to prove its cases.

use std::collections::BTreeMap;
use std::time::Duration;

#[cfg(feature = "mutants")]
use super::mutant::Mutant;
use super::mutant::broken;
use crate::{Acquire, Claim, Evict, Incumbent, Label, LeaseName, Loss, Note, Release, Renew, Token};

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

/// All rows, and the laws that change them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Rows {
    rows: BTreeMap<String, Row>,
    #[cfg(feature = "mutants")]
    broken: Option<Mutant>,
}

impl Rows {
    /// The rows by name.
    #[must_use]
    pub fn rows(&self) -> &BTreeMap<String, Row> {
        &self.rows
    }

    /// Deletes a row by hand.
    pub fn delete(&mut self, name: &LeaseName) {
        self.rows.remove(name.as_str());
    }

    /// Laws L1 and L2.
    pub fn acquire(&mut self, claim: &Claim, now: i64) -> Acquire {
        let key = self.key(&claim.name);
        let expires_at = now.saturating_add(self.extent(claim));
        let token = match self.rows.get_mut(&key) {
            None => now,
            Some(row) if is_free(row, now, broken!(self, ExpiredAfterTheLastInstant)) => next_token(
                row.token,
                now,
                broken!(self, TokenStays),
                broken!(self, TokenFollowsTheClockAlone),
            ),
            Some(row) if row.holder == claim.holder.as_str() && may_retry(row, broken!(self, RetryAfterRelease)) => {
                if !broken!(self, RetryDoesNotExtend) {
                    row.expires_at = row.expires_at.max(expires_at);
                }
                if broken!(self, RetryBumpsTheToken) {
                    row.token += 1;
                }
                if broken!(self, RetryMovesAcquiredAt) {
                    row.acquired_at = now;
                }
                return granted(row.token);
            }
            Some(row) if broken!(self, ForgetsTheHolder) => row.token + 1,
            Some(_) if broken!(self, BusyIsSilent) => return Acquire::Busy(None),
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
            if broken!(self, GrantKeepsReleasedAt) {
                row.released_at = old.released_at;
            }
            if broken!(self, GrantKeepsNote) {
                row.note.clone_from(&old.note);
            }
        }
        if broken!(self, TakesEveryExpiredRow) {
            self.rows
                .values_mut()
                .filter(|other| other.expires_at <= now)
                .for_each(|other| *other = row.clone());
        }
        self.rows.insert(key, row);
        granted(token)
    }

    /// Law L3.
    pub fn renew(&mut self, claim: &Claim, now: i64) -> Renew {
        let key = self.key(&claim.name);
        let extent = self.extent(claim);
        let Some(row) = self.rows.get_mut(&key) else {
            return Renew::Lost(Loss::Gone);
        };
        let ours = row.holder == claim.holder.as_str() || broken!(self, RenewIgnoresTheHolder);
        let last_instant = broken!(self, LiveToTheLastInstant) && row.expires_at == now;
        let live = row.expires_at > now || last_instant || broken!(self, RenewRevives);
        let unreleased = row.released_at.is_none() || broken!(self, RenewAfterRelease);
        if ours && live && unreleased {
            let from = if broken!(self, RenewAddsUp) {
                row.expires_at
            } else {
                now
            };
            let extended = from.saturating_add(extent);
            row.expires_at = if broken!(self, RenewShortens) {
                extended
            } else {
                row.expires_at.max(extended)
            };
            if broken!(self, RenewBumpsTheToken) {
                row.token += 1;
            }
            if broken!(self, RenewMovesAcquiredAt) {
                row.acquired_at = now;
            }
            return Renew::Renewed;
        }
        if broken!(self, LossIsAlwaysGone) {
            return Renew::Lost(Loss::Gone);
        }
        Renew::Lost(Loss::of_row(
            &row.holder,
            &claim.holder,
            row.released_at.is_some(),
            expires_in(row, now),
        ))
    }

    /// Law L4.
    pub fn release(&mut self, claim: &Claim, now: i64) -> Release {
        let key = self.key(&claim.name);
        let Some(row) = self.rows.get_mut(&key) else {
            return Release::NotHeld;
        };
        let ours = row.holder == claim.holder.as_str() || broken!(self, ReleaseIgnoresTheHolder);
        if !ours || (row.released_at.is_some() && !broken!(self, ReleasesTwice)) {
            return Release::NotHeld;
        }
        if broken!(self, ReleaseDeletes) {
            self.rows.remove(&key);
            return Release::Released;
        }
        if !broken!(self, ReleaseLeavesNoMark) {
            row.released_at = Some(now);
        }
        if row.expires_at > now || broken!(self, ReleaseRaisesAnExpiredRow) {
            let least = if broken!(self, ReleaseIgnoresTheMinimum) {
                0
            } else {
                claim.at_least_for_us()
            };
            let from = if broken!(self, MinimumCountsFromTheRelease) {
                now
            } else {
                row.acquired_at
            };
            let until = now.max(from.saturating_add(least));
            row.expires_at = if broken!(self, MinimumNeverExceedsTheTtl) {
                row.expires_at.min(until)
            } else {
                until
            };
        }
        Release::Released
    }

    /// `Inspect::evict`, and `evict_now` with `free_at_once`.
    pub fn evict(&mut self, name: &LeaseName, by: &Label, reason: &Note, now: i64, free_at_once: bool) -> Evict {
        let Some(row) = self.rows.get_mut(name.as_str()).filter(|row| row.expires_at > now) else {
            return Evict::NotHeld;
        };
        row.token = next_token(
            row.token,
            now,
            broken!(self, EvictKeepsTheToken),
            broken!(self, TokenFollowsTheClockAlone),
        );
        if !broken!(self, EvictKeepsTheHolder) {
            row.holder = format!("evict/{by}");
        }
        row.acquired_at = now;
        row.released_at = None;
        row.note = (!broken!(self, EvictDropsTheReason)).then(|| reason.as_str().to_owned());
        if free_at_once != broken!(self, EvictSwapsItsKinds) {
            row.expires_at = now;
        }
        Evict::Evicted {
            free_in: expires_in(row, now).unwrap_or_default(),
        }
    }

    /// `Inspect::pause`.
    pub fn pause(&mut self, name: &LeaseName, duration_us: i64, by: &Label, reason: &Note, now: i64) {
        let old = self.rows.get(name.as_str());
        // A pause that is replaced hands on from when on it may end: the displaced holder's expiry.
        let floor = match old {
            Some(row) if is_pause(row) && row.released_at.is_none() => row.acquired_at,
            Some(row) => row.expires_at,
            None => now,
        };
        let floor = if broken!(self, PauseForgetsTheHolder) {
            now
        } else {
            floor.max(now)
        };
        let token = old.map_or(now, |row| {
            next_token(
                row.token,
                now,
                broken!(self, PauseKeepsTheToken),
                broken!(self, TokenFollowsTheClockAlone),
            )
        });
        let row = Row {
            holder: format!("pause/{by}"),
            token,
            acquired_at: floor,
            expires_at: floor.max(now.saturating_add(duration_us)),
            released_at: None,
            note: Some(reason.as_str().to_owned()),
        };
        self.rows.insert(name.as_str().to_owned(), row);
    }

    /// `Inspect::resume`.
    pub fn resume(&mut self, name: &LeaseName, now: i64) -> Release {
        let Some(row) = self.rows.get_mut(name.as_str()) else {
            return Release::NotHeld;
        };
        let any = broken!(self, ResumeReleasesAnyone);
        if !(is_pause(row) || any) || row.released_at.is_some() || row.expires_at <= now {
            return Release::NotHeld;
        }
        row.released_at = Some(now);
        row.expires_at = if broken!(self, ResumeFreesAtOnce) {
            now
        } else {
            row.acquired_at.max(now)
        };
        Release::Released
    }

    /// `Inspect::purge`.
    pub fn purge(&mut self, older_than_us: i64, now: i64) -> u64 {
        let before = self.rows.len();
        let (live, ahead) = (
            broken!(self, PurgeDeletesTheLive),
            broken!(self, PurgeForgetsAheadTokens),
        );
        self.rows.retain(|_, row| {
            let old = row.expires_at <= now.saturating_sub(older_than_us) || live;
            !(old && (row.token <= now || ahead))
        });
        (before - self.rows.len()) as u64
    }

    fn key(&self, name: &LeaseName) -> String {
        let name = name.as_str();
        if broken!(self, FoldsCase) {
            return name.to_lowercase();
        }
        if broken!(self, CutsNames) {
            return name.chars().take(64).collect();
        }
        name.to_owned()
    }

    /// How long a grant or renewal lasts, in microseconds.
    fn extent(&self, claim: &Claim) -> i64 {
        if broken!(self, WholeSeconds) {
            claim.ttl_us() / 1_000_000 * 1_000_000
        } else {
            claim.ttl_us()
        }
    }

    /// Breaks one rule from now on.
    #[cfg(feature = "mutants")]
    pub fn break_rule(&mut self, mutant: Mutant) {
        self.broken = Some(mutant);
    }

    #[cfg(feature = "mutants")]
    pub(super) fn loses_replies(&self) -> bool {
        broken!(self, LosesTheReply)
    }
}

/// The boundary that L1 speaks of; a mutant moves it by one microsecond.
fn is_free(row: &Row, now: i64, late: bool) -> bool {
    if late {
        row.expires_at < now
    } else {
        row.expires_at <= now
    }
}

fn may_retry(row: &Row, after_release: bool) -> bool {
    row.released_at.is_none() || after_release
}

/// Law L2's rule for a token that is not the first.
fn next_token(old: i64, now: i64, stays: bool, clock_alone: bool) -> i64 {
    match (stays, clock_alone) {
        (true, _) => old,
        (_, true) => now,
        _ => now.max(old.saturating_add(1)),
    }
}

fn is_pause(row: &Row) -> bool {
    row.holder.starts_with("pause/")
}

fn expires_in(row: &Row, now: i64) -> Option<Duration> {
    u64::try_from(row.expires_at - now)
        .ok()
        .filter(|left| *left > 0)
        .map(Duration::from_micros)
}

fn incumbent(row: &Row, now: i64) -> Incumbent {
    Incumbent::new(row.holder.clone(), expires_in(row, now).unwrap_or_default())
}

fn granted(token: i64) -> Acquire {
    // Only a store whose clock stands before 1970 could make another number.
    Token::new(token.max(1)).map_or(Acquire::Busy(None), Acquire::Granted)
}

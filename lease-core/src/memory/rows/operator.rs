//! What operators do to rows: the laws of [`Inspect`](crate::Inspect).

use super::super::mutant::Mutant;
use super::{Row, Rows, expires_in};
use crate::{Evict, Label, LeaseName, Note, PURGE_MARGIN, Release, microseconds};

impl Rows {
    /// `Inspect::evict`, and `evict_now` with `free_at_once`.
    pub fn evict(&mut self, name: &LeaseName, by: &Label, reason: &Note, now: i64, free_at_once: bool) -> Evict {
        let rules = self.rules;
        let any = rules.breaks(Mutant::EvictTakesTheFree);
        let row = self.rows.get_mut(name.as_str());
        let Some(row) = row.filter(|row| row.expires_at > now || any) else {
            return Evict::NotHeld;
        };
        if !rules.breaks(Mutant::EvictKeepsTheToken) {
            row.token = rules.next_token(row.token, now);
        }
        if !rules.breaks(Mutant::EvictKeepsTheHolder) {
            row.holder = format!("evict/{by}");
        }
        row.acquired_at = now;
        row.released_at = None;
        row.note = (!rules.breaks(Mutant::EvictDropsTheReason)).then(|| reason.as_str().to_owned());
        if free_at_once != rules.breaks(Mutant::EvictSwapsItsKinds) {
            row.expires_at = now;
        }
        Evict::Evicted {
            free_in: expires_in(row, now).unwrap_or_default(),
        }
    }

    /// `Inspect::pause`.
    pub fn pause(&mut self, name: &LeaseName, duration_us: i64, by: &Label, reason: &Note, now: i64) {
        let rules = self.rules;
        let old = self.rows.get(name.as_str());
        // A pause that is replaced hands on from when on it may end: the displaced holder's expiry.
        let floor = match old {
            Some(row) if is_pause(row) && row.released_at.is_none() && !rules.breaks(Mutant::SecondPauseAddsUp) => {
                row.acquired_at
            }
            Some(row) => row.expires_at,
            None => now,
        };
        let floor = if rules.breaks(Mutant::PauseForgetsTheHolder) {
            now
        } else {
            floor.max(now)
        };
        let token = match old {
            Some(row) if rules.breaks(Mutant::PauseKeepsTheToken) => row.token,
            Some(row) => rules.next_token(row.token, now),
            None => rules.first_token(now),
        };
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
        let rules = self.rules;
        let Some(row) = self.rows.get_mut(name.as_str()) else {
            return Release::NotHeld;
        };
        let any = rules.breaks(Mutant::ResumeReleasesAnyone);
        if !(is_pause(row) || any) || row.released_at.is_some() || row.expires_at <= now {
            return Release::NotHeld;
        }
        row.released_at = Some(now);
        row.expires_at = if rules.breaks(Mutant::ResumeFreesAtOnce) {
            now
        } else if rules.breaks(Mutant::ResumeFreesNothing) {
            row.expires_at
        } else {
            row.acquired_at.max(now)
        };
        Release::Released
    }

    /// `Inspect::purge`.
    pub fn purge(&mut self, older_than_us: i64, now: i64) -> u64 {
        let rules = self.rules;
        let before = self.rows.len();
        let margin = if rules.breaks(Mutant::PurgeHasNoMargin) {
            0
        } else {
            microseconds(PURGE_MARGIN)
        };
        let old_at = if rules.breaks(Mutant::PurgeIgnoresTheAge) {
            now
        } else {
            now.saturating_sub(older_than_us.max(margin))
        };
        self.rows.retain(|_, row| {
            let old = row.expires_at <= old_at || rules.breaks(Mutant::PurgeDeletesTheLive);
            // A new row starts from the clock, so only a token that is behind the clock may be forgotten.
            let ahead = row.token >= now && !rules.breaks(Mutant::PurgeForgetsAheadTokens);
            !old || ahead
        });
        (before - self.rows.len()) as u64
    }
}

fn is_pause(row: &Row) -> bool {
    row.holder.starts_with("pause/")
}

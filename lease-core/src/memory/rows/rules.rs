//! The single comparisons that the laws consist of, each of which a mutant can get wrong.

use std::collections::BTreeMap;

use super::super::mutant::Mutant;
use super::Row;
use crate::{Claim, LeaseName};

/// How rows are compared and extended. With the feature `mutants` one rule may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(in super::super) struct Rules {
    #[cfg(feature = "mutants")]
    pub(in super::super) broken: Option<Mutant>,
}

impl Rules {
    /// Whether this rule is broken. Without the feature it is `false` for the compiler, and nothing of it is left.
    pub(in super::super) const fn breaks(self, rule: Mutant) -> bool {
        #[cfg(feature = "mutants")]
        return matches!(self.broken, Some(broken) if broken as u8 == rule as u8);
        #[cfg(not(feature = "mutants"))]
        {
            let _ = rule;
            false
        }
    }

    /// The key of a name's row. Law L7: the name itself.
    pub(super) fn key(self, rows: &BTreeMap<String, Row>, name: &LeaseName) -> String {
        let name = name.as_str();
        if self.breaks(Mutant::FoldsCase) {
            return name.to_lowercase();
        }
        if self.breaks(Mutant::FoldsAccents) {
            return without_accents(name);
        }
        if self.breaks(Mutant::CutsNames) {
            return name.chars().take(64).collect();
        }
        if self.breaks(Mutant::TrimsDots) {
            return name.trim_matches('.').to_owned();
        }
        if self.breaks(Mutant::StripesNames) {
            let sum: u32 = name.bytes().map(u32::from).sum();
            return format!("stripe {}", sum % 64);
        }
        let pattern = self
            .breaks(Mutant::NamesArePatterns)
            .then(|| rows.keys().find(|key| is_like(name, key)));
        pattern.flatten().map_or_else(|| name.to_owned(), String::clone)
    }

    /// How long a grant or renewal lasts, in microseconds.
    pub(super) fn extent(self, claim: &Claim) -> i64 {
        if self.breaks(Mutant::WholeSeconds) {
            claim.ttl_us() / 1_000_000 * 1_000_000
        } else if self.breaks(Mutant::WrongUnit) {
            claim.ttl_us() / 1_000
        } else if self.breaks(Mutant::ThirtyTwoBits) {
            claim.ttl_us() % (1 << 32)
        } else {
            claim.ttl_us()
        }
    }

    /// Law L2, the first token of a name. A clock that stands before 1970 makes none below 1.
    pub(super) fn first_token(self, now: i64) -> i64 {
        if self.breaks(Mutant::TokensCountFromOne) {
            1
        } else {
            now.max(1)
        }
    }

    /// Law L2, every other token.
    pub(super) fn next_token(self, old: i64, now: i64) -> i64 {
        if self.breaks(Mutant::TokenStays) {
            old
        } else if self.breaks(Mutant::TokenFollowsTheClockAlone) {
            now
        } else {
            now.max(old.saturating_add(1))
        }
    }

    /// Law L1: expired is `expires_at <= now`.
    pub(super) fn is_free(self, row: &Row, now: i64) -> bool {
        row.expires_at < now || (row.expires_at == now && !self.breaks(Mutant::ExpiredAfterTheLastInstant))
    }

    /// Law L3: live is the complement of expired.
    pub(super) fn is_live(self, row: &Row, now: i64) -> bool {
        if self.breaks(Mutant::LiveToTheLastInstant) {
            return row.expires_at >= now;
        }
        row.expires_at > now
    }

    /// Whether the holder in the row is the claim's.
    pub(super) fn is_ours(self, row: &Row, claim: &Claim) -> bool {
        let (theirs, ours) = (row.holder.as_str(), claim.holder.as_str());
        if self.breaks(Mutant::ComparesLabelsAlone) {
            return theirs.split('/').next() == ours.split('/').next();
        }
        theirs == ours || (self.breaks(Mutant::FoldsCaseOfHolders) && theirs.to_lowercase() == ours.to_lowercase())
    }

    /// Whether the row's own holder may have it once more: a retry.
    pub(super) fn may_retry(self, row: &Row) -> bool {
        (row.released_at.is_none() || self.breaks(Mutant::RetryAfterRelease)) && !self.breaks(Mutant::RefusesTheRetry)
    }
}

/// As a collation that ignores accents sees it: enough of one to be noticed.
fn without_accents(name: &str) -> String {
    let plain = |c| match c {
        'ó' | 'ö' => 'o',
        'é' => 'e',
        'ü' => 'u',
        c => c,
    };
    name.chars().filter(|c| *c != '\u{301}').map(plain).collect()
}

/// SQL's `LIKE` without an escape character.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some(first) = pattern.chars().next() else {
        return text.is_empty();
    };
    let rest = &pattern[first.len_utf8()..];
    if first == '%' {
        let mut ends = (0..=text.len()).filter(|at| text.is_char_boundary(*at));
        return ends.any(|at| is_like(rest, &text[at..]));
    }
    let next = text.chars().next();
    next.is_some_and(|c| (first == '_' || c == first) && is_like(rest, &text[c.len_utf8()..]))
}

//! Values as they come from and go to the file.

use std::time::Duration;

use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::sql_types::{Binary, Text};
use diesel::sqlite::{Sqlite, SqliteValue};
use lease_core::microseconds;

/// A hundred thousand years: that far from now a time in microseconds always fits.
const MAX_SPAN_US: i64 = 100_000 * 365 * 86_400 * 1_000_000;

/// Text that is shown even if it is no UTF-8, which SQLite keeps as it is given.
#[derive(Debug, Clone, FromSqlRow)]
pub(crate) struct Lossy(pub(crate) String);

impl FromSql<Text, Sqlite> for Lossy {
    fn from_sql(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
        let bytes = <Vec<u8> as FromSql<Binary, Sqlite>>::from_sql(value)?;
        Ok(Self(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// A duration in microseconds, at most a hundred thousand years.
pub(crate) fn span(duration: Duration) -> i64 {
    microseconds(duration).min(MAX_SPAN_US)
}

/// How long from `now` to `expires_at`; `None` when that has passed.
pub(crate) fn left(expires_at: i64, now: i64) -> Option<Duration> {
    u64::try_from(expires_at.saturating_sub(now))
        .ok()
        .filter(|left| *left > 0)
        .map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_is_no_time_left() {
        assert_eq!(left(7, 7), None);
        assert_eq!(left(6, 7), None);
        assert_eq!(left(8, 7), Some(Duration::from_micros(1)));
        assert_eq!(left(i64::MIN, i64::MAX), None);
        assert!(left(i64::MAX, i64::MIN).is_some());
    }

    #[test]
    fn absurd_spans_stay_within_what_a_time_holds() {
        assert_eq!(span(Duration::MAX), MAX_SPAN_US);
        assert!(MAX_SPAN_US.checked_add(4_000_000_000_000_000).is_some());
        assert_eq!(span(Duration::from_nanos(1)), 1, "a fraction is rounded up");
    }
}

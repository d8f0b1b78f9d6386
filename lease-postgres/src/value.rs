//! Values as they come from and go to the server.

use std::time::Duration;

use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::pg::data_types::PgTimestamp;
use diesel::pg::{Pg, PgValue};
use diesel::sql_types::Text;
use lease_core::{DbTime, microseconds};

/// From 1970-01-01 to 2000-01-01, where PostgreSQL counts from.
const EPOCH_US: i64 = 946_684_800_000_000;
/// Five thousand years. That far from now, to both sides, a `timestamptz` can always hold the time.
const MAX_SPAN_US: i64 = 5_000 * 365 * 86_400 * 1_000_000;

/// Text that is shown even if it is no UTF-8, as a column that is `bytea` may hold it.
#[derive(Debug, Clone, FromSqlRow)]
pub(crate) struct Lossy(pub(crate) String);

impl FromSql<Text, Pg> for Lossy {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(String::from_utf8_lossy(value.as_bytes()).into_owned()))
    }
}

/// A duration in microseconds for the server, at most five thousand years.
pub(crate) fn span(duration: Duration) -> i64 {
    microseconds(duration).min(MAX_SPAN_US)
}

/// How long from `now` to `expires_at`; `None` when that has passed. The infinite times are far, not errors.
pub(crate) fn left(expires_at: PgTimestamp, now: PgTimestamp) -> Option<Duration> {
    u64::try_from(expires_at.0.saturating_sub(now.0))
        .ok()
        .filter(|left| *left > 0)
        .map(Duration::from_micros)
}

/// A server's time as people read it.
pub(crate) fn db_time(time: PgTimestamp) -> DbTime {
    DbTime::from_micros(time.0.saturating_add(EPOCH_US))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinite_times_are_far_and_not_errors() {
        let (past, now, future) = (PgTimestamp(i64::MIN), PgTimestamp(0), PgTimestamp(i64::MAX));
        assert_eq!(left(past, now), None);
        assert_eq!(left(now, now), None, "expired is `expires_at <= now`");
        assert!(left(future, now) > Some(Duration::from_secs(1 << 40)));
        assert_eq!(db_time(future), DbTime::from_micros(i64::MAX));
        assert_eq!(db_time(now), DbTime::from_micros(946_684_800_000_000));
    }

    #[test]
    fn absurd_spans_stay_within_what_a_timestamp_holds() {
        assert_eq!(span(Duration::MAX), MAX_SPAN_US);
        assert_eq!(span(Duration::from_nanos(1)), 1, "a fraction is rounded up");
    }
}

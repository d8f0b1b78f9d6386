//! Values as they come from and go to the server.

use std::time::Duration;

use lease_core::microseconds;

/// Five thousand years. That far from now, to both sides, a `DATETIME` can always hold the time.
const MAX_SPAN_US: i64 = 5_000 * 365 * 86_400 * 1_000_000;

/// A duration in microseconds for the server, at most five thousand years.
pub(crate) fn span(duration: Duration) -> i64 {
    microseconds(duration).min(MAX_SPAN_US)
}

/// So many microseconds as a duration; `None` when they are over.
pub(crate) fn left(microseconds: i64) -> Option<Duration> {
    u64::try_from(microseconds)
        .ok()
        .filter(|left| *left > 0)
        .map(Duration::from_micros)
}

/// Text that is shown even if it is no UTF-8.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_is_when_nothing_is_left() {
        assert_eq!(left(0), None);
        assert_eq!(left(-1), None);
        assert_eq!(left(1), Some(Duration::from_micros(1)));
    }

    #[test]
    fn absurd_spans_stay_within_what_a_datetime_holds() {
        assert_eq!(span(Duration::MAX), MAX_SPAN_US);
        assert_eq!(span(Duration::from_nanos(1)), 1, "a fraction is rounded up");
    }
}

//! [`Finding`]: one line of what a backend's `diagnose` found; and the lines that are the same for every backend.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::clock::boot_time;
use crate::{DbTime, Moment, RepoError, RepoErrorKind};

/// One thing that was looked at before anything goes wrong, and what to do about it. A backend's `diagnose` answers with these.
///
/// `Display` is the line for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What was looked at, in one word such as `privileges`.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What to do about it; `None` where there is nothing to do.
    pub advice: Option<String>,
}

/// How bad a [`Finding`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Level {
    /// As it should be.
    Ok,
    /// Leases work, but something else does not, or a promise will not hold under circumstances that are named.
    Warning,
    /// Leases do not work, or not as promised. The kind says whether waiting may help.
    Error(RepoErrorKind),
}

impl Level {
    /// The level as one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error(_) => "error",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Finding {
    /// Something that is as it should be.
    #[must_use]
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        let (level, found) = (Level::Ok, found.into());
        Self {
            check,
            level,
            found,
            advice: None,
        }
    }

    /// Something that breaks a promise under circumstances that `found` names.
    #[must_use]
    pub fn warning(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            level: Level::Warning,
            advice: Some(advice.into()),
            ..Self::ok(check, found)
        }
    }

    /// Something that keeps leases from working as promised.
    #[must_use]
    pub fn error(
        check: &'static str,
        kind: RepoErrorKind,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Error(kind),
            ..Self::warning(check, found, advice)
        }
    }

    /// What a failure says: its causes were found, and its kind says what to do.
    #[must_use]
    pub fn failure(check: &'static str, error: &RepoError) -> Self {
        let causes = error.causes();
        let found = if causes.is_empty() { error.to_string() } else { causes };
        Self::error(check, error.kind(), found, error.kind().advice())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.level, self.check, self.found)?;
        match &self.advice {
            Some(advice) => write!(f, ": {advice}"),
            None => Ok(()),
        }
    }
}

/// The database's clock, read once, between two looks at this machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClockReading {
    asked: Moment,
    read: DbTime,
    answered: Moment,
    here: SystemTime,
}

/// A renewal has a quarter of what a TTL leaves before its margin, so ten of the longest round trips fit easily.
const ROUND_TRIPS_IN_A_TTL: u32 = 10;
/// The TTL that nobody should have to think about.
const SHORT_TTL: Duration = Duration::from_secs(5);
/// How far apart two wall clocks are when one of them is set by nobody.
const UNSET: Duration = Duration::from_secs(1);
/// What a database's clock may tick in, such as SQLite's: a millisecond; and the least drift.
const TICK: Duration = Duration::from_millis(3);

impl ClockReading {
    /// How many readings a diagnosis takes.
    pub const COUNT: u32 = 11;
    /// How far apart it takes them, so that a step is seen that comes within a second.
    pub const EVERY: Duration = Duration::from_millis(100);

    /// A reading that was asked for at a time of [`BootClock`](crate::BootClock) and has just been answered.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "how far two wall clocks are apart is what is looked for"
    )]
    pub fn answered(asked: Moment, read: DbTime) -> Self {
        Self {
            asked,
            read,
            answered: boot_time(),
            here: SystemTime::now(),
        }
    }

    /// What readings in a row tell: `latency`, `clock_offset` and `clock_steps`. Nothing if there are none.
    #[must_use]
    pub fn findings(readings: &[Self]) -> Vec<Finding> {
        let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
            return Vec::new();
        };
        let closest = readings
            .iter()
            .min_by_key(|reading| reading.round_trip())
            .unwrap_or(first);
        let mut pairs: Vec<(&Self, &Self)> = readings.iter().zip(&readings[1..]).collect();
        pairs.push((first, last));
        vec![latency(readings), closest.offset(), steps(&pairs)]
    }

    fn round_trip(&self) -> Duration {
        self.answered.since(self.asked)
    }

    fn offset(&self) -> Finding {
        const CHECK: &str = "clock_offset";
        let here = match self.here.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => i128::try_from(since.as_micros()).unwrap_or(i128::MAX),
            Err(before) => -i128::try_from(before.duration().as_micros()).unwrap_or(i128::MAX),
        };
        let give_or_take = self.round_trip() / 2;
        let then = here - i128::try_from(give_or_take.as_micros()).unwrap_or(0);
        let offset = i128::from(self.read.as_micros()) - then;
        let size = Duration::from_micros(u64::try_from(offset.unsigned_abs()).unwrap_or(u64::MAX));
        let side = if offset < 0 { "behind" } else { "ahead of" };
        let found =
            format!("the database's clock is {size:.1?} {side} this machine's, give or take {give_or_take:.1?}");
        if size.saturating_sub(give_or_take) <= UNSET {
            return Finding::ok(CHECK, found);
        }
        let advice = "no lease hangs on this machine's clock, but one of the two is wrong: set both by NTP, and those of servers \
                      that may take over";
        Finding::warning(CHECK, found, advice)
    }

    /// By how much the database's clock went too far or not far enough until `later`, for certain.
    fn astray(&self, later: &Self) -> Duration {
        let advance = later.read.as_micros().saturating_sub(self.read.as_micros());
        let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let (least, most) = (
            micros(later.asked.since(self.answered)),
            micros(later.answered.since(self.asked)),
        );
        let astray = (advance - most).max(least - advance).max(0);
        Duration::from_micros(astray.unsigned_abs())
    }
}

fn latency(readings: &[ClockReading]) -> Finding {
    const CHECK: &str = "latency";
    let mut trips: Vec<Duration> = readings.iter().map(ClockReading::round_trip).collect();
    trips.sort_unstable();
    let (median, longest) = (trips[trips.len() / 2], trips[trips.len() - 1]);
    let found = format!(
        "median {median:.1?}, longest {longest:.1?}, of {} round trips",
        trips.len()
    );
    let ttl = longest * ROUND_TRIPS_IN_A_TTL;
    if ttl <= SHORT_TTL {
        return Finding::ok(CHECK, found);
    }
    let seconds = ttl.as_secs() + 1;
    let advice = format!("take no TTL below {seconds} s: renewals must have time for a second try");
    Finding::warning(CHECK, found, advice)
}

fn steps(pairs: &[(&ClockReading, &ClockReading)]) -> Finding {
    const CHECK: &str = "clock_steps";
    let worst = pairs.iter().max_by_key(|(earlier, later)| earlier.astray(later));
    let whole = pairs.last().map(|(first, last)| last.answered.since(first.asked));
    let whole = whole.unwrap_or_default();
    let (astray, within) = worst.map_or_else(Default::default, |(earlier, later)| {
        (earlier.astray(later), later.answered.since(earlier.asked))
    });
    if astray <= TICK.max(within / 100) {
        return Finding::ok(
            CHECK,
            format!("the database's clock kept pace with this machine's for {whole:.1?}"),
        );
    }
    let found = format!("within {within:.1?} the database's clock went astray by {astray:.1?} from this machine's");
    let advice = "let NTP slew that clock and never step it; until then two may hold one lease, and only the fencing token \
                  keeps the earlier one's writes out";
    Finding::error(CHECK, RepoErrorKind::Other, found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asked at a time in milliseconds, answered `took` later, by a database's clock that is `off` milliseconds off.
    fn reading(at: u64, took: u64, off: i64) -> ClockReading {
        let moment = |ms: u64| Moment::from_nanos(ms * 1_000_000);
        let middle = i64::try_from(at * 1_000 + took * 500).unwrap();
        ClockReading {
            asked: moment(at),
            read: DbTime::from_micros(middle + off * 1_000),
            answered: moment(at + took),
            here: SystemTime::UNIX_EPOCH + Duration::from_millis(at + took),
        }
    }

    fn levels(readings: &[ClockReading]) -> Vec<(&'static str, &'static str)> {
        let findings = ClockReading::findings(readings);
        findings.iter().map(|f| (f.check, f.level.as_str())).collect()
    }

    const FINE: [(&str, &str); 3] = [("latency", "ok"), ("clock_offset", "ok"), ("clock_steps", "ok")];

    #[test]
    fn clocks_that_agree_are_fine_however_slow_the_answers_are_up_to_a_limit() {
        let fine: Vec<_> = (0..11).map(|i| reading(i * 100, 1 + i % 3, 0)).collect();
        assert_eq!(levels(&fine), FINE);
        assert_eq!(levels(&fine[..1]), FINE);
        assert_eq!(levels(&[]), []);
        let slow = [reading(0, 10, 0), reading(100, 700, 0), reading(900, 10, 0)];
        assert_eq!(levels(&slow), [("latency", "warning"), FINE[1], FINE[2]]);
        let finding = &ClockReading::findings(&slow)[0];
        assert!(finding.advice.as_ref().unwrap().contains("below 8 s"), "{finding}");
    }

    #[test]
    fn clocks_that_are_far_apart_are_a_warning_and_a_step_is_an_error() {
        for off in [-5_000, 5_000] {
            let apart = [reading(10_000, 1, off), reading(10_100, 1, off)];
            assert_eq!(levels(&apart), [FINE[0], ("clock_offset", "warning"), FINE[2]]);
        }
        for off in [-30, 30] {
            let stepped = [reading(0, 1, 0), reading(100, 1, off), reading(200, 1, off)];
            assert_eq!(levels(&stepped), [FINE[0], FINE[1], ("clock_steps", "error")]);
        }
        // Too fast by a little more than a hundredth, which no two readings in a row show.
        let drifts: Vec<_> = (0..11)
            .map(|i| reading(i * 100, 1, i64::try_from(i).unwrap() * 2))
            .collect();
        assert_eq!(levels(&drifts), [FINE[0], FINE[1], ("clock_steps", "error")]);
    }

    #[test]
    fn a_step_that_a_slow_answer_may_explain_is_none() {
        let slow = [reading(0, 1, 0), reading(100, 60, 25)];
        assert_eq!(levels(&slow), FINE);
    }

    #[test]
    fn a_failure_is_told_with_its_causes_and_what_to_do() {
        let error = RepoError::new(RepoErrorKind::Denied, crate::Operation::Connect).with_source("no such role");
        let finding = Finding::failure("connection", &error);
        assert_eq!(finding.level, Level::Error(RepoErrorKind::Denied));
        assert_eq!(finding.found, "no such role");
        assert!(
            finding
                .to_string()
                .starts_with("error connection: no such role: the server refused")
        );
        let bare = RepoError::new(RepoErrorKind::Timeout, crate::Operation::Connect);
        assert!(Finding::failure("connection", &bare).found.contains("connect failed"));
    }
}

//! [`Clock`] and [`Moment`]: the only time that a tenure knows.

use std::fmt;
use std::time::Duration;

#[cfg(feature = "tokio")]
pub use with_tokio::{BootClock, Clock, TokioClock};

/// A time on a [`Clock`]: how long since that clock's own start. It never meets a wall clock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// The start of the clock.
    pub const ZERO: Self = Self(0);
    /// Later than anything: 584 years after the start.
    pub const FAR: Self = Self(u64::MAX);

    /// The time that far from the clock's start. Saturates at [`FAR`](Self::FAR).
    #[must_use]
    pub fn after_start(duration: Duration) -> Self {
        Self(nanos(duration))
    }

    /// Nanoseconds since the clock's start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time of that many nanoseconds after the clock's start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// How long from `earlier` to this; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Self;
    /// Saturates at [`FAR`](Moment::FAR).
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

impl std::ops::Sub<Duration> for Moment {
    type Output = Self;
    /// Saturates at [`ZERO`](Moment::ZERO).
    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Moment({:?})", Duration::from_nanos(self.0))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The machine's monotonic clock that goes on in suspend: `CLOCK_BOOTTIME`, see clock_gettime(2).
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn boot_time() -> Moment {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    Moment(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// Where there is no `CLOCK_BOOTTIME`: the standard library's monotonic clock, which may stand still in suspend.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub(crate) fn boot_time() -> Moment {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    Moment::after_start(START.get_or_init(std::time::Instant::now).elapsed())
}

#[cfg(feature = "tokio")]
mod with_tokio {
    use std::future::Future;
    use std::pin::Pin;

    use super::{Moment, boot_time};

    /// Where `Lease` gets its time. The default is [`BootClock`]; tests bring one that they move.
    pub trait Clock: Send + Sync + 'static {
        /// The time now. It never goes back.
        fn now(&self) -> Moment;

        /// Resolves at `at` or a little later. It may be late by a suspend of the machine: who waits looks at
        /// [`now`](Self::now) again.
        fn sleep_until(&self, at: Moment) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    }

    /// The machine's monotonic clock that counts suspend.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct BootClock;

    impl Clock for BootClock {
        fn now(&self) -> Moment {
            boot_time()
        }

        #[expect(clippy::disallowed_methods, reason = "this is the clock")]
        fn sleep_until(&self, at: Moment) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(tokio::time::sleep(at.since(boot_time())))
        }
    }

    /// tokio's own clock, for tests under [paused time](tokio::time::pause).
    ///
    /// Give it to the builder together with `keeper_on`, so that keeper and test share one paused runtime.
    #[derive(Debug, Clone, Copy)]
    pub struct TokioClock {
        start: tokio::time::Instant,
    }

    impl TokioClock {
        /// A clock that starts now.
        #[must_use]
        #[expect(
            clippy::new_without_default,
            clippy::disallowed_methods,
            reason = "it reads the runtime's clock"
        )]
        pub fn new() -> Self {
            Self {
                start: tokio::time::Instant::now(),
            }
        }
    }

    impl Clock for TokioClock {
        #[expect(clippy::disallowed_methods, reason = "this is the clock")]
        fn now(&self) -> Moment {
            // An offset, so that durations can be subtracted from early moments without saturating.
            Moment::from_nanos(1 << 60) + tokio::time::Instant::now().duration_since(self.start)
        }

        #[expect(clippy::disallowed_methods, reason = "this is the clock")]
        fn sleep_until(&self, at: Moment) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(tokio::time::sleep(at.since(self.now())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_saturate_instead_of_overflowing() {
        assert_eq!(Moment::FAR + Duration::MAX, Moment::FAR);
        assert_eq!(Moment::ZERO - Duration::from_secs(1), Moment::ZERO);
        assert_eq!(Moment::ZERO.since(Moment::FAR), Duration::ZERO);
    }

    #[test]
    fn boot_time_never_goes_back() {
        let first = boot_time();
        assert!(boot_time() >= first);
    }
}

//! [`Time`]: the one clock of a run, and how it goes on.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use lease_core::{BootClock, Clock, Moment, TokioClock};

use crate::RunningClock;

/// How far a paused clock goes on while nothing else happens.
const STEP: Duration = Duration::from_millis(250);
/// The same for a running one.
const LONG_STEP: Duration = Duration::from_secs(1);
/// How long a statement may really be under way before time goes on all the same.
const PATIENCE: Duration = Duration::from_secs(10);

/// The clock of keeper, faults and jobs. Tests never wait for it: where nothing is under way it is moved on.
#[derive(Debug, Clone)]
pub struct Time(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Paused(TokioClock),
    Running(RunningClock),
}

impl Time {
    /// The paused clock of the current runtime.
    #[must_use]
    pub fn paused() -> Self {
        Self(Kind::Paused(TokioClock::new()))
    }

    /// The machine's clock, moved on while no statement is under way: for stores behind a socket.
    #[must_use]
    pub fn running() -> Self {
        Self(Kind::Running(RunningClock::new()))
    }

    pub(super) const fn is_paused(&self) -> bool {
        matches!(self.0, Kind::Paused(_))
    }

    /// Lets so much time pass at the most, as far as statements that are under way allow.
    pub(super) async fn step(&self, longest: Duration, is_quiet: impl Fn() -> bool) {
        match &self.0 {
            Kind::Paused(_) => self.sleep(longest.min(STEP)).await,
            Kind::Running(clock) => {
                settle().await;
                let start = BootClock.now();
                while !is_quiet() && BootClock.now().since(start) < PATIENCE {
                    settle().await;
                }
                clock.advance(longest.min(LONG_STEP));
                settle().await;
            }
        }
    }

    /// Lets time pass, step by step.
    pub(super) async fn pass(&self, time: Duration, is_quiet: impl Fn() -> bool) {
        let end = self.now() + time;
        while self.now() < end {
            self.step(end.since(self.now()), &is_quiet).await;
        }
    }

    /// Lets time pass all at once, as after a long suspend.
    pub(super) async fn leap(&self, time: Duration) {
        match &self.0 {
            Kind::Paused(_) => tokio::time::advance(time).await,
            Kind::Running(clock) => clock.advance(time),
        }
        settle().await;
    }

    pub(super) async fn sleep(&self, time: Duration) {
        self.sleep_until(self.now() + time).await;
    }
}

/// Lets whoever is awake do what there is to do.
pub(super) async fn settle() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

impl Clock for Time {
    fn now(&self) -> Moment {
        match &self.0 {
            Kind::Paused(clock) => clock.now(),
            Kind::Running(clock) => clock.now(),
        }
    }

    fn sleep_until(&self, at: Moment) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        match &self.0 {
            Kind::Paused(clock) => clock.sleep_until(at),
            Kind::Running(clock) => clock.sleep_until(at),
        }
    }
}

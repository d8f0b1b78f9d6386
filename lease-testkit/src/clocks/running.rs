//! [`RunningClock`]: the machine's clock, which a test can also move on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lease_core::{BootClock, Clock, Moment};
use tokio::sync::watch;

/// Runs by itself, and can be moved on by a test: for tests against real servers.
///
/// tokio's paused clock is of no use there: it moves by itself whenever every task waits, for a socket too. Clones
/// show the same time. Sleeping needs a tokio runtime with time enabled.
#[derive(Debug, Clone)]
pub struct RunningClock {
    ahead: Arc<watch::Sender<Duration>>,
}

impl RunningClock {
    /// A clock that shows the machine's time.
    #[must_use]
    pub fn new() -> Self {
        Self {
            ahead: Arc::new(watch::Sender::new(Duration::ZERO)),
        }
    }

    /// Moves it on, and wakes whoever has slept long enough.
    pub fn advance(&self, by: Duration) {
        self.ahead.send_modify(|ahead| *ahead += by);
    }
}

impl Default for RunningClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RunningClock {
    fn now(&self) -> Moment {
        BootClock.now() + *self.ahead.borrow()
    }

    fn sleep_until(&self, at: Moment) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut moves = self.ahead.subscribe();
        // Keeps the sender, so that waiting for a move never ends for want of one.
        let clock = self.clone();
        Box::pin(async move {
            while clock.now() < at {
                let ahead = *moves.borrow_and_update();
                tokio::select! {
                    () = BootClock.sleep_until(at - ahead) => {}
                    _ = moves.changed() => {}
                }
            }
        })
    }
}

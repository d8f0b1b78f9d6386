//! [`Point`]: where a future is dropped.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use lease_core::{BootClock, Clock};
use tokio::sync::Notify;

use super::Time;

/// Where a future is dropped, unless it ends before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// After how many polls.
    pub polls: usize,
    /// And how long after.
    pub rest: Rest,
}

/// What happens between a future's last poll and its drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rest {
    /// Nothing.
    None,
    /// Nothing; and then the same is asked for again at once, once polled and dropped as well.
    Again,
    /// So much time, and nobody polls it, woken or not.
    Time(Duration),
    /// So much real time, as little as a statement takes. For stores behind a socket.
    Real(Duration),
    /// What it waits for: it is dropped when it was to be polled again.
    Woken,
}

impl Rest {
    /// All that make sense under paused time, but for `None`.
    pub const ALL: &'static [Self] = &[
        Self::Again,
        Self::Time(Duration::from_millis(400)),
        Self::Time(Duration::from_secs(3)),
        Self::Woken,
    ];
}

/// How a future ended.
pub(super) enum End<T> {
    /// By itself.
    Ended(T),
    /// Dropped at its point.
    Dropped,
}

/// A future that waits longer than this is never woken.
const LONGEST: Duration = Duration::from_secs(400);

/// The same, where time does not go on because a statement is under way.
const LONGEST_REAL: Duration = Duration::from_secs(60);

/// Polls a future to its point and drops it there.
///
/// It is polled when it was woken, and never otherwise. While it waits, time goes on as far as `is_quiet` allows.
pub(super) async fn drop_at<F: Future>(
    point: Point,
    time: &Time,
    is_quiet: impl Fn() -> bool,
    future: F,
) -> Result<End<F::Output>, String> {
    let mut future = Box::pin(future);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    for poll in 0..point.polls {
        if poll > 0 {
            woken.wait(time, &is_quiet).await?;
        }
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Ok(End::Ended(output));
        }
    }
    match point.rest {
        Rest::None | Rest::Again => {}
        Rest::Time(rest) => time.pass(rest, &is_quiet).await,
        Rest::Real(rest) => {
            let start = BootClock.now();
            while BootClock.now().since(start) < rest {
                tokio::task::yield_now().await;
            }
        }
        Rest::Woken => woken.wait(time, &is_quiet).await?,
    }
    drop(future);
    Ok(End::Dropped)
}

#[derive(Default)]
struct Woken {
    is_woken: AtomicBool,
    notify: Notify,
}

impl Woken {
    async fn wait(&self, time: &Time, is_quiet: &impl Fn() -> bool) -> Result<(), String> {
        let (end, start) = (time.now() + LONGEST, BootClock.now());
        while !self.is_woken.swap(false, Ordering::SeqCst) {
            let is_early = time.now() < end && BootClock.now().since(start) < LONGEST_REAL;
            super::ensure!(is_early, "it was never woken");
            tokio::select! {
                biased;
                () = self.notify.notified() => {}
                () = time.step(LONGEST, is_quiet) => {}
            }
        }
        Ok(())
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        self.notify.notify_one();
    }
}

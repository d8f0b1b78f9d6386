//! [`Probe`]: a job that counts what is done to it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use lease_core::Held;
use tokio::task::JoinHandle;

use super::Time;

/// What was done to a job.
#[derive(Debug, Clone, Default)]
pub(super) struct Probe(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    made: AtomicUsize,
    started: AtomicUsize,
    polls: AtomicUsize,
    dropped: AtomicUsize,
    running: AtomicUsize,
}

/// What a job does when it is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenTold {
    Ends,
    GoesOn,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Probe {
    /// A job with three awaits, the second of which lasts so long.
    pub(super) fn job(
        &self,
        time: &Time,
        lasts: Duration,
        when_told: WhenTold,
    ) -> impl FnOnce(Held) -> Counted + use<> {
        self.0.made.fetch_add(1, Ordering::SeqCst);
        let (mut alive, time) = (Alive(self.0.clone(), false), time.clone());
        move |held| {
            alive.0.started.fetch_add(1, Ordering::SeqCst);
            alive.0.running.fetch_add(1, Ordering::SeqCst);
            alive.1 = true;
            let work: Work = Box::pin(async move {
                tokio::task::yield_now().await;
                tokio::select! {
                    () = sleep(time, lasts) => {}
                    _ = held.cancelled(), if when_told == WhenTold::Ends => {}
                }
                tokio::task::yield_now().await;
            });
            Counted { work, alive }
        }
    }

    /// A future that belongs to no lease, and is counted in the same way.
    pub(super) fn future(&self, time: &Time, lasts: Duration) -> Counted {
        self.0.made.fetch_add(1, Ordering::SeqCst);
        self.0.started.fetch_add(1, Ordering::SeqCst);
        let (alive, time) = (Alive(self.0.clone(), false), time.clone());
        let work: Work = Box::pin(sleep(time, lasts));
        Counted { work, alive }
    }

    /// Whether it was called.
    pub(super) fn has_started(&self) -> bool {
        self.0.started.load(Ordering::SeqCst) > 0
    }

    /// Whether it runs under its lease: called, and not dropped.
    pub(super) fn runs(&self) -> bool {
        self.0.running.load(Ordering::SeqCst) > 0
    }

    /// How often it was polled.
    pub(super) fn polls(&self) -> usize {
        self.0.polls.load(Ordering::SeqCst)
    }

    /// Whether it was dropped, each time it was made, or was never made.
    pub(super) fn is_gone(&self) -> bool {
        self.0.dropped.load(Ordering::SeqCst) == self.0.made.load(Ordering::SeqCst)
    }
}

/// Wakes once, however often its clock is moved on.
async fn sleep(time: Time, lasts: Duration) {
    struct Abort(JoinHandle<()>);
    impl Drop for Abort {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let mut sleeping = Abort(tokio::spawn(async move { time.sleep(lasts).await }));
    let _ = (&mut sleeping.0).await;
}

/// The job's future.
pub(super) struct Counted {
    work: Work,
    alive: Alive,
}

impl Future for Counted {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.alive.0.polls.fetch_add(1, Ordering::SeqCst);
        self.work.as_mut().poll(context)
    }
}

/// Goes with the job, from the closure into its future; with whether it runs under the lease.
struct Alive(Arc<Counts>, bool);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
        if self.1 {
            self.0.running.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

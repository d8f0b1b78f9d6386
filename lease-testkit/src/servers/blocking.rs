//! From blocking code to the asynchronous drivers and back.

use std::error::Error;
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use super::ServerError;

/// Runs all asynchronous work of the servers. Tests call from threads that belong to runtimes of their own, which must
/// neither be blocked on nor outlived by what was started there.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("lease-test-servers")
        .enable_all()
        .build()
        .expect("a runtime needs one thread")
});

/// Runs `work` on the servers' own runtime and waits for its end. Safe to call inside and outside of runtimes.
///
/// # Panics
///
/// If `work` panics.
pub(super) fn run<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    RUNTIME.spawn(async move {
        // The receiver waits below, so it is there.
        let _ = sender.send(work.await);
    });
    receiver.recv().expect("the work panicked, see above")
}

/// As [`run`], for a talk with a server that may be silent.
pub(super) fn talk<T, E>(
    step: &'static str,
    limit: Duration,
    talk: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, ServerError>
where
    T: Send + 'static,
    E: Error + Send + Sync + 'static,
{
    run(async move {
        match tokio::time::timeout(limit, talk).await {
            Ok(answer) => answer.map_err(ServerError::sql(step)),
            Err(_) => Err(ServerError::TimedOut {
                step,
                seconds: limit.as_secs(),
            }),
        }
    })
}

/// A limit for waiting on things outside of this process, which no test clock can move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    until: Instant,
}

impl Patience {
    /// Starts to count now.
    pub(super) fn new(limit: Duration) -> Self {
        Self { until: now() + limit }
    }

    /// Sleeps for a moment, and returns false once the limit has passed.
    pub(super) fn wait(&self) -> bool {
        thread::sleep(Duration::from_millis(20));
        now() < self.until
    }
}

#[expect(clippy::disallowed_methods, reason = "servers are started in real time")]
fn now() -> Instant {
    Instant::now()
}

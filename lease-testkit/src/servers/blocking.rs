//! From blocking code to the asynchronous drivers and back.

use std::sync::{Arc, LazyLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

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

/// Runs SQL text on a connection of its own and returns the first column of its rows.
pub(super) fn sql(
    config: Config,
    text: String,
    step: &'static str,
    limit: Duration,
) -> Result<Vec<String>, ServerError> {
    run(async move {
        let seconds = limit.as_secs();
        match tokio::time::timeout(limit, ask(config, &text)).await {
            Ok(answer) => answer.map_err(|error| ServerError::Sql {
                step,
                source: Arc::new(error),
            }),
            Err(_) => Err(ServerError::TimedOut { step, seconds }),
        }
    })
}

async fn ask(config: Config, text: &str) -> Result<Vec<String>, tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    let io = tokio::spawn(connection);
    let answer = client.simple_query(text).await;
    // Ended here and now: a connection that lingers would count in a test's view of its server.
    drop(client);
    let _ = io.await;
    let rows = answer?.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    });
    Ok(rows.collect())
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

//! [`Harness`]: what the suite needs to know of a backend.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use futures_util::FutureExt;
use lease_core::{Repo, microseconds};

/// A private store for one case: what a backend's author implements.
///
/// Each case opens one, and closes it when the case has ended, by a panic too.
///
/// # Time
/// Cases never sleep: they move the store's clock with [`step_clock`](Self::step_clock). A real server's clock also
/// goes on by itself between two statements. So a case that says "still held" leaves at least half a minute of room,
/// and one that says "free now" moves the clock to the very microsecond: true on any server, and a test of the
/// boundary where the clock stands still.
///
/// # Runtime
/// The suite spawns tasks, so [`run`](Self::run) has to enter a tokio runtime.
pub trait Harness: Sized + 'static {
    /// The backend. For the group `inspect` it implements [`Inspect`](lease_core::Inspect) as well.
    type Repo: Repo;

    /// How long one case may take before it fails: generous, since it only catches what hangs.
    const LIMIT: Duration = Duration::from_secs(120);

    /// Makes a store that is empty and that nobody else uses.
    fn open() -> impl Future<Output = Self>;

    /// One more client of this store: as independent of the others as those of two pods are.
    fn client(&self) -> impl Future<Output = Self::Repo>;

    /// Makes it look as if the store's clock had moved on by so many microseconds, or back if negative.
    ///
    /// Where the clock can't be moved, the rows are, the other way, all in one statement: subtract `by_us` from
    /// `acquired_at`, `expires_at` and `released_at`; and if it is negative, from `token` too, since tokens come from
    /// the clock and are ahead of one that stepped back.
    fn step_clock(&self, by_us: i64) -> impl Future<Output = ()>;

    /// Clears the store away. As provided, nothing: for stores that do it when they are dropped.
    fn close(self) -> impl Future<Output = ()> {
        async {}
    }

    /// Runs a case to its end. As provided, in a tokio runtime of its own with four workers.
    fn run(case: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .enable_all()
            .build()
            .expect("a tokio runtime starts")
            .block_on(case);
    }
}

/// Moves the store's clock on.
pub(crate) async fn pass<H: Harness>(store: &H, time: Duration) {
    store.step_clock(microseconds(time)).await;
}

/// Runs one case on a store of its own, which is closed whatever happens.
#[doc(hidden)]
pub fn run_case<H: Harness>(case: impl AsyncFnOnce(&H)) {
    H::run(async {
        let store = H::open().await;
        let limited = tokio::time::timeout(H::LIMIT, case(&store));
        let end = AssertUnwindSafe(limited).catch_unwind().await;
        store.close().await;
        match end {
            Ok(Ok(())) => {}
            Ok(Err(_)) => panic!("the case did not end within {:?}", H::LIMIT),
            Err(panic) => resume_unwind(panic),
        }
    });
}

//! [`ManualClock`]: time moves only when told.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lease_core::{Clock, Moment};
use tokio::sync::watch;

/// Parts of a rate: [`ManualClock::at_rate`] takes it in millionths.
const MILLION: u128 = 1_000_000;

/// A clock that stands still until a test moves it on. Sleepers wake when their time has come.
///
/// Clones show the same time. It needs no runtime, so a keeper on a thread of its own can have it, and
/// [`MemoryRepo::with_time`](lease_core::MemoryRepo::with_time) can run with it as well.
///
/// ```
/// use std::time::Duration;
/// use lease_core::{Clock, MemoryRepo};
/// use lease_testkit::ManualClock;
///
/// let clock = ManualClock::new();
/// let database = clock.clone();
/// let repo = MemoryRepo::with_time(move || database.now());
/// let holder = clock.at_rate(991_000);
/// clock.advance(Duration::from_secs(100));
/// // The holder's clock is 0.9 % slow.
/// assert_eq!(holder.now().since(ManualClock::START), Duration::from_millis(99_100));
/// # drop(repo);
/// ```
#[derive(Clone)]
pub struct ManualClock {
    world: Arc<World>,
    /// Where this clock and the world's were together, and how fast it runs since, in millionths.
    since: (Moment, Moment),
    rate: u128,
    faults: Arc<Faults>,
}

struct World {
    time: watch::Sender<Moment>,
    sleepers: watch::Sender<usize>,
}

#[derive(Default)]
struct Faults {
    now: AtomicBool,
    sleep: AtomicBool,
}

impl ManualClock {
    /// What a new clock shows. Not zero, so that a duration before it is a moment too.
    pub const START: Moment = Moment::from_nanos(1 << 60);

    /// A clock that stands at [`START`](Self::START).
    #[must_use]
    pub fn new() -> Self {
        Self {
            world: Arc::new(World {
                time: watch::Sender::new(Self::START),
                sleepers: watch::Sender::new(0),
            }),
            since: (Self::START, Self::START),
            rate: MILLION,
            faults: Arc::default(),
        }
    }

    /// Another machine's clock in the same world: shows the same time now, and from now on runs at so many millionths
    /// of the world's rate. [`advance`](Self::advance) moves the world, whichever clock it is called on.
    #[must_use]
    pub fn at_rate(&self, millionths: u32) -> Self {
        Self {
            world: Arc::clone(&self.world),
            since: (*self.world.time.borrow(), self.show(*self.world.time.borrow())),
            rate: u128::from(millionths),
            faults: Arc::default(),
        }
    }

    /// Moves time on, for every clock of this world, and wakes whoever has slept long enough.
    pub fn advance(&self, by: Duration) {
        self.world.time.send_modify(|time| *time = *time + by);
    }

    /// How many sleep at the moment, on any clock of this world.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        *self.world.sleepers.borrow()
    }

    /// Waits until at least so many sleep: the way to know that a keeper has done what there was to do.
    pub async fn until_asleep(&self, count: usize) {
        let mut sleepers = self.world.sleepers.subscribe();
        // The sender lives as long as this clock, so the wait can't fail.
        let _ = sleepers.wait_for(|sleeping| *sleeping >= count).await;
    }

    /// Makes the next call of [`now`](Clock::now) on this clock or a clone of it panic.
    pub fn fail_next_now(&self) {
        self.faults.now.store(true, Ordering::SeqCst);
    }

    /// Makes the next call of [`sleep_until`](Clock::sleep_until) on this clock or a clone of it panic: it kills a
    /// keeper on purpose.
    pub fn fail_next_sleep(&self) {
        self.faults.sleep.store(true, Ordering::SeqCst);
    }

    /// What this clock shows when the world's shows `time`.
    fn show(&self, time: Moment) -> Moment {
        let (world, own) = self.since;
        let passed = time.since(world).as_nanos() * self.rate / MILLION;
        own + Duration::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        assert!(
            !self.faults.now.swap(false, Ordering::SeqCst),
            "the test made the clock's `now` fail"
        );
        self.show(*self.world.time.borrow())
    }

    fn sleep_until(&self, at: Moment) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        assert!(
            !self.faults.sleep.swap(false, Ordering::SeqCst),
            "the test made the clock's `sleep_until` fail"
        );
        let clock = self.clone();
        Box::pin(async move {
            let mut time = clock.world.time.subscribe();
            let passed = |time: &Moment| clock.show(*time) >= at;
            if passed(&time.borrow_and_update()) {
                return;
            }
            let _asleep = Asleep::new(&clock.world);
            // The sender lives as long as this clock, so the wait can't fail.
            let _ = time.wait_for(passed).await;
        })
    }
}

/// Counts a sleeper, also one that is dropped before its time.
struct Asleep<'a>(&'a World);

impl<'a> Asleep<'a> {
    fn new(world: &'a World) -> Self {
        world.sleepers.send_modify(|sleepers| *sleepers += 1);
        Self(world)
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.sleepers.send_modify(|sleepers| *sleepers -= 1);
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock")
            .field("time", &self.show(*self.world.time.borrow()))
            .field("millionths", &self.rate)
            .field("sleepers", &self.sleepers())
            .finish_non_exhaustive()
    }
}

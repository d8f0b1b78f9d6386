//! [`Held`]: what f knows of the lease it runs under.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::tenure::TenureMutant;
use crate::{Clock, Holder, LeaseName, LeaseOver, Moment, OnLost, Stop, Timing, Token};

/// The lease that f runs under: its token, its cancellation, and whether it is still ours.
///
/// Give clones of it to whatever f spawns: a spawned task is not dropped with f.
///
/// What it says is about ownership by this pod's clock. It can't see a pause between its answer and your write: for
/// that there is the [fencing token](Self::token).
#[derive(Clone)]
pub struct Held {
    tenancy: Arc<Tenancy>,
}

impl Held {
    pub(crate) const fn new(tenancy: Arc<Tenancy>) -> Self {
        Self { tenancy }
    }

    /// Which lease.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        &self.tenancy.name
    }

    /// What stands in the row for this tenure.
    #[must_use]
    pub fn holder(&self) -> &Holder {
        &self.tenancy.holder
    }

    /// The fencing token. Send it along with each write, and let what is written to refuse a smaller one.
    #[must_use]
    pub fn token(&self) -> Token {
        self.tenancy.token
    }

    /// Resolves when f should end, and says why. It stays resolved.
    ///
    /// From then f has `margin` less `drift` until it is dropped if no renewal was answered, and `margin` before its time limit. A lost
    /// lease leaves it no time, an evicted one what it had. In a shutdown it has the grace; told by a `Periodic` or a `Campaign`, as long
    /// as it takes.
    /// Dropping this future does nothing.
    pub async fn cancelled(&self) -> Stop {
        self.tenancy.stopped.cancelled().await;
        self.stop().unwrap_or(Stop::Keeper)
    }

    /// A token that is cancelled when f should end, for code that takes one. Cancelling it changes nothing here.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.tenancy.stopped.child_token()
    }

    /// Why f should end, once it should.
    #[must_use]
    pub fn stop(&self) -> Option<Stop> {
        self.tenancy.stop.get().cloned()
    }

    /// Whether the lease is ours now. False from `drop_at` on; a stop that still leaves time does not matter.
    #[must_use]
    pub fn is_live(&self) -> bool {
        !self.tenancy.is_over()
    }

    /// Fires it, unless it has fired.
    pub(crate) fn tell(&self, stop: Stop) -> bool {
        let told = self.tenancy.stop().is_some();
        self.tenancy.tell(stop);
        !told
    }

    /// Whether f is gone and the lease on its way back.
    pub(crate) fn has_ended(&self) -> bool {
        self.tenancy.ended.load(Ordering::SeqCst)
    }

    /// How long the lease is ours for certain if no further renewal succeeds. Zero from `drop_at` on.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.tenancy.drop_at().since(self.tenancy.clock.now())
    }

    /// An error once the lease is not ours, for use before a write: `held.check()?`.
    ///
    /// # Errors
    /// [`LeaseOver`] from `drop_at` on.
    pub fn check(&self) -> Result<(), LeaseOver> {
        if self.is_live() {
            return Ok(());
        }
        Err(LeaseOver {
            name: self.name().clone(),
            stop: self.stop(),
        })
    }

    /// Drives `future` as long as the lease is ours, and drops it then: for tasks that f spawned.
    ///
    /// No poll of `future` begins after `drop_at`, whatever `on_lost` says. Dropping this future drops `future`.
    ///
    /// # Errors
    /// [`LeaseOver`] when the lease was over before `future` had ended.
    pub async fn until_lost<F: Future>(&self, future: F) -> Result<F::Output, LeaseOver> {
        let mut future = pin!(future);
        let mut dropped = pin!(self.tenancy.dropped.cancelled());
        poll_fn(|cx| {
            if dropped.as_mut().poll(cx).is_ready() || self.tenancy.is_over() {
                return Poll::Ready(Err(LeaseOver {
                    name: self.name().clone(),
                    stop: self.stop(),
                }));
            }
            future.as_mut().poll(cx).map(Ok)
        })
        .await
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("name", self.name())
            .field("holder", self.holder())
            .field("token", &self.token())
            .field("stop", &self.stop())
            .finish_non_exhaustive()
    }
}

/// What keeper, guard and f share of one tenure. The keeper writes it; the others read.
pub(crate) struct Tenancy {
    pub(crate) name: LeaseName,
    pub(crate) holder: Holder,
    pub(crate) token: Token,
    pub(crate) on_lost: OnLost,
    /// Broken on purpose, it has none.
    pub(crate) has_gate: bool,
    pub(crate) clock: Arc<dyn Clock>,
    /// Nanoseconds of the [`Moment`] from which on no poll of f may begin.
    drop_at: AtomicU64,
    /// Whether the guard is gone.
    pub(crate) ended: AtomicBool,
    stop: OnceLock<Stop>,
    stopped: CancellationToken,
    /// Wakes whoever must drop f.
    pub(crate) dropped: CancellationToken,
}

impl Tenancy {
    pub(crate) fn new(
        name: LeaseName,
        holder: Holder,
        token: Token,
        timing: &Timing,
        clock: Arc<dyn Clock>,
        drop_at: Moment,
    ) -> Self {
        Self {
            name,
            holder,
            token,
            on_lost: timing.on_lost(),
            has_gate: !timing.breaks(TenureMutant::HasNoGate),
            clock,
            drop_at: AtomicU64::new(drop_at.as_nanos()),
            ended: AtomicBool::new(false),
            stop: OnceLock::new(),
            stopped: CancellationToken::new(),
            dropped: CancellationToken::new(),
        }
    }

    pub(crate) fn drop_at(&self) -> Moment {
        Moment::from_nanos(self.drop_at.load(Ordering::SeqCst))
    }

    pub(crate) fn set_drop_at(&self, at: Moment) {
        self.drop_at.store(at.as_nanos(), Ordering::SeqCst);
    }

    /// The gate: whether the time to drop f has come, by the clock read now.
    pub(crate) fn is_over(&self) -> bool {
        self.clock.now() >= self.drop_at()
    }

    pub(crate) fn stop(&self) -> Option<Stop> {
        self.stop.get().cloned()
    }

    /// Fires `held`. Only the first cause counts.
    pub(crate) fn tell(&self, stop: Stop) {
        let _ = self.stop.set(stop);
        self.stopped.cancel();
    }
}

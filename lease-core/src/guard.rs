//! [`Guard`]: a lease that is held, and the one path that runs f under it.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use tokio::sync::oneshot;

use crate::held::Tenancy;
use crate::keeper::{Command, KeeperLink, TenureId};
use crate::names::Reservation;
use crate::{Held, OnLost, Operation, Outcome, Ran, Release, RepoError, RepoErrorKind, Stop};

/// A lease that is held and renewed until this is run to its end, released, or dropped.
///
/// Dropping it only tells the keeper, which releases in the background; it works outside a runtime too. When the
/// process ends right after, the row may instead be freed at its expiry: [`release`](Self::release) or
/// [`Lease::shutdown`](crate::Lease::shutdown) is the way to be sure.
#[must_use = "a lease whose guard is dropped is released"]
pub struct Guard {
    held: Held,
    tenancy: Arc<Tenancy>,
    keeper: KeeperLink,
    id: TenureId,
    reservation: Option<Reservation>,
    /// Whether a job ran under it, so that `at_least_for` counts.
    used: bool,
    finished: bool,
}

/// How f's polling ended.
enum End<T> {
    Value(T),
    Panic(Box<dyn Any + Send>),
    Dropped,
}

impl Guard {
    pub(crate) fn new(tenancy: Arc<Tenancy>, keeper: KeeperLink, id: TenureId, reservation: Reservation) -> Self {
        let held = Held::new(tenancy.clone());
        Self {
            held,
            tenancy,
            keeper,
            id,
            reservation: Some(reservation),
            used: false,
            finished: false,
        }
    }

    /// The guard goes to the user, whose work begins.
    pub(crate) fn into_users_hands(mut self) -> Self {
        self.used = true;
        self
    }

    /// What f would be given.
    #[must_use]
    pub const fn held(&self) -> &Held {
        &self.held
    }

    /// Runs f under the lease and releases it afterwards.
    ///
    /// The clock is read before every poll of f. Once `drop_at` has passed, f is dropped instead
    /// ([`OnLost::Drop`]): no poll of it begins after another pod may have started. A poll that is already under way
    /// is not covered, nor are tasks that f spawned and blocking calls: give those a clone of [`Held`].
    ///
    /// If f does not start because it was told to stop or the lease is over already, the outcome is [`Outcome::Dropped`]. It returns when the
    /// release was answered or its limit has passed, a little over five seconds after f's end.
    ///
    /// # Panics
    /// When f panics: the lease is released first, then the panic goes on.
    ///
    /// # Cancelling
    /// Dropping this future drops f, then releases in the background.
    pub async fn run<F, Fut, T>(mut self, f: F) -> Outcome<T>
    where
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = T>,
    {
        if self.tenancy.stop().is_some() || self.gate_is_closed() {
            return self.dropped(false).await;
        }
        self.used = true;
        self.keeper.send(Command::Started {
            id: self.id,
            at: self.tenancy.clock.now(),
        });
        let held = self.held.clone();
        let future = match catch_unwind(AssertUnwindSafe(|| f(held))) {
            Ok(future) => future,
            Err(panic) => return self.panicked(panic).await,
        };
        let mut slot = pin!(Some(future));
        let (on_lost, has_gate) = (self.tenancy.on_lost, self.tenancy.has_gate);
        let end = {
            let mut dropped = pin!(self.tenancy.dropped.cancelled());
            poll_fn(|cx| {
                if on_lost == OnLost::Drop
                    && (dropped.as_mut().poll(cx).is_ready() || (has_gate && self.tenancy.is_over()))
                {
                    return Poll::Ready(End::Dropped);
                }
                let Some(future) = slot.as_mut().as_pin_mut() else {
                    return Poll::Ready(End::Dropped);
                };
                match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
                    Ok(Poll::Pending) => Poll::Pending,
                    Ok(Poll::Ready(value)) => Poll::Ready(End::Value(value)),
                    Err(panic) => Poll::Ready(End::Panic(panic)),
                }
            })
            .await
        };
        // f is gone before anyone is told so. If its destructor panics, that is a panic of f.
        let gone = catch_unwind(AssertUnwindSafe(|| slot.set(None)));
        match (end, gone) {
            (End::Panic(panic), _) | (_, Err(panic)) => self.panicked(panic).await,
            (End::Dropped, Ok(())) => self.dropped(true).await,
            (End::Value(value), Ok(())) => {
                let (token, stop) = (self.tenancy.token, self.tenancy.stop());
                let release = self.finish().await;
                Outcome::Ran(Ran {
                    value,
                    token,
                    stop,
                    release,
                })
            }
        }
    }

    /// Gives the lease up and waits for the answer, at most a little over five seconds.
    ///
    /// # Errors
    /// [`RepoError`] when the store had no answer. The release is then repeated in the background until it is answered,
    /// for up to two ttl.
    ///
    /// # Cancelling
    /// Dropping this future changes nothing: the release is on its way.
    pub async fn release(self) -> Result<Release, RepoError> {
        self.finish().await
    }

    fn gate_is_closed(&self) -> bool {
        self.tenancy.on_lost == OnLost::Drop && self.tenancy.is_over()
    }

    async fn dropped<T>(mut self, used: bool) -> Outcome<T> {
        self.used = used;
        let token = self.tenancy.token;
        let stop = self.tenancy.stop().unwrap_or(Stop::Overdue { last_error: None });
        let _ = self.finish().await;
        Outcome::Dropped { token, stop }
    }

    async fn panicked<T>(self, panic: Box<dyn Any + Send>) -> Outcome<T> {
        let _ = self.finish().await;
        resume_unwind(panic)
    }

    async fn finish(mut self) -> Result<Release, RepoError> {
        let (reply, answer) = oneshot::channel();
        self.tell_finished(Some(reply));
        answer.await.unwrap_or_else(|_| {
            let error = RepoError::new(RepoErrorKind::Other, Operation::Release).with_lease(&self.tenancy.name);
            Err(error.with_source("the keeper gave this tenure up: its row is freed at its expiry"))
        })
    }

    fn tell_finished(&mut self, reply: Option<oneshot::Sender<Result<Release, RepoError>>>) {
        self.finished = true;
        self.tenancy.ended.store(true, Ordering::SeqCst);
        self.keeper.send(Command::Finished {
            id: self.id,
            ran: self.used,
            reply,
            // Without anybody who waits, the name is free again now: a store that is silent holds up no tick.
            reservation: self.reservation.take().filter(Reservation::is_awaited),
        });
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.finished {
            self.tell_finished(None);
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&self.held).finish()
    }
}

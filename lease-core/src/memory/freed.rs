//! Who waits for a lease of a `MemoryRepo` to become free.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Counts what may have freed a lease, and wakes who waits for that. Nobody is told why: it is a hint.
#[derive(Default)]
pub(super) struct Freed(Mutex<State>);

#[derive(Default)]
struct State {
    count: u64,
    wakers: BTreeMap<u64, Waker>,
    next: u64,
}

impl Freed {
    pub(super) fn happened(&self) {
        let wakers = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.count += 1;
            std::mem::take(&mut state.wakers)
        };
        wakers.into_values().for_each(Waker::wake);
    }

    /// Resolves at the next that happens after the first poll.
    pub(super) async fn next(&self) {
        let mut place = Place {
            freed: self,
            since: None,
        };
        poll_fn(|context| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (count, number) = *place.since.get_or_insert_with(|| {
                state.next += 1;
                (state.count, state.next)
            });
            if state.count > count {
                return Poll::Ready(());
            }
            state.wakers.insert(number, context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// A place among those who wait. Dropped, it leaves no waker.
struct Place<'a> {
    freed: &'a Freed,
    /// How often it had happened, and the number of the place.
    since: Option<(u64, u64)>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some((_, number)) = self.since {
            self.freed
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .wakers
                .remove(&number);
        }
    }
}

//! [`Waiting`]: who waits for which lease, and what was told meanwhile.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lease_core::LeaseName;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The leases that somebody waits for, or did a short while ago.
#[derive(Default)]
pub(super) struct Waiting(Mutex<State>);

#[derive(Default)]
struct State {
    names: HashMap<String, Lease>,
    /// Listens, unless it has ended.
    task: Option<JoinHandle<()>>,
    /// Whether it would hear of a release.
    hears: bool,
    /// It never will.
    is_deaf: bool,
}

/// One lease. What is told while nobody waits, as between a hint and the next try, is kept for whoever waits next.
///
/// That is one at a time, for a `Lease` lets the others wait in their turn.
struct Lease {
    tell: watch::Sender<()>,
    /// What the last who waited has seen.
    seen: watch::Receiver<()>,
    /// Nobody waited a round ago.
    unused: bool,
}

/// A place among those who wait. Dropped, it leaves nothing behind but, for two rounds, its lease's name.
pub(super) struct Place<'a> {
    waiting: &'a Waiting,
    name: &'a str,
    told: watch::Receiver<()>,
}

impl Waiting {
    /// Waits for a lease; nobody does where nothing will ever be heard. Starts what listens, unless it runs.
    pub(super) fn enter<'a>(
        &'a self,
        name: &'a LeaseName,
        start: impl FnOnce() -> JoinHandle<()>,
    ) -> Option<Place<'a>> {
        let mut state = self.lock();
        if state.is_deaf {
            return None;
        }
        // It may have ended with its runtime.
        if state.task.as_ref().is_none_or(JoinHandle::is_finished) {
            state.hears = false;
            state.task = Some(start());
        }
        let hears = state.hears;
        let lease = state
            .names
            .entry(name.as_str().to_owned())
            .or_insert_with(|| Lease::new(hears));
        lease.unused = false;
        Some(Place {
            waiting: self,
            name: name.as_str(),
            told: lease.seen.clone(),
        })
    }

    /// Something was told of the lease of that name.
    pub(super) fn tell(&self, name: &str) {
        if let Some(lease) = self.lock().names.get(name) {
            lease.tell.send_replace(());
        }
    }

    /// From now on it hears. What was told before went by, so everybody is told.
    pub(super) fn hears(&self) {
        let mut state = self.lock();
        state.hears = true;
        for lease in state.names.values() {
            lease.tell.send_replace(());
        }
    }

    /// From now on it hears nothing. Whether it did before.
    pub(super) fn heard(&self) -> bool {
        std::mem::take(&mut self.lock().hears)
    }

    /// Whoever waits, waits for nothing, and so will everybody.
    pub(super) fn never_hears(&self) {
        let mut state = self.lock();
        state.is_deaf = true;
        state.names.clear();
    }

    /// A round is over. Forgets the leases for which nobody waits and did not a round ago; when none is left, listening is over.
    pub(super) fn is_over(&self) -> bool {
        let mut state = self.lock();
        state.names.retain(|_, lease| {
            // One receiver is the lease's own.
            let unused = lease.tell.receiver_count() == 1;
            let keep = !(unused && lease.unused);
            lease.unused = unused;
            keep
        });
        let over = state.names.is_empty();
        if over {
            // Under the same lock, so that whoever comes next starts it again.
            state.task = None;
        }
        over
    }

    pub(super) fn end(&self) {
        if let Some(task) = self.lock().task.take() {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// Where something is heard already, whoever comes is told at once: a release just before he came went by.
    fn new(hears: bool) -> Self {
        let (tell, mut seen) = watch::channel(());
        if hears {
            seen.mark_changed();
        }
        Self {
            tell,
            seen,
            unused: false,
        }
    }
}

impl Place<'_> {
    /// Resolves when something is told, or was before and nobody saw it.
    pub(super) async fn told(mut self) {
        if self.told.changed().await.is_err() {
            return pending().await;
        }
        if let Some(lease) = self.waiting.lock().names.get_mut(self.name) {
            lease.seen.mark_unchanged();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    static NAME: LeaseName = LeaseName::from_static("job");

    fn waits(waiting: &Waiting) -> Place<'_> {
        waiting
            .enter(&NAME, || tokio::spawn(pending()))
            .expect("it is not deaf")
    }

    fn is_told(waiting: &Waiting) -> bool {
        waits(waiting).told().now_or_never().is_some()
    }

    #[tokio::test]
    async fn what_is_told_while_nobody_waits_is_told_to_the_next_once() {
        let waiting = Waiting::default();
        assert!(!is_told(&waiting), "nothing was told");
        waiting.tell("job");
        waiting.tell("another");
        assert!(is_told(&waiting));
        assert!(!is_told(&waiting), "once");
        let (one, two) = (waits(&waiting), waits(&waiting));
        waiting.tell("job");
        assert!(one.told().now_or_never().is_some() && two.told().now_or_never().is_some());
        assert!(!is_told(&waiting));
    }

    #[tokio::test]
    async fn who_comes_after_silence_is_told_for_it_may_have_gone_by() {
        let waiting = Waiting::default();
        let before = waits(&waiting);
        waiting.hears();
        assert!(before.told().now_or_never().is_some());
        assert!(!is_told(&waiting), "all that was told was heard");
        assert!(waiting.heard());
        waiting.hears();
        assert!(is_told(&waiting));
        let other = LeaseName::from_static("other");
        let place = waiting.enter(&other, || unreachable!("it runs")).unwrap();
        assert!(place.told().now_or_never().is_some(), "nobody kept it for this one");
    }

    #[tokio::test]
    async fn after_two_rounds_without_anybody_it_is_over_and_begins_anew() {
        let waiting = Waiting::default();
        let place = waits(&waiting);
        for _ in 0..3 {
            assert!(!waiting.is_over());
        }
        drop(place);
        assert!(!waiting.is_over(), "he may be back in a moment");
        drop(waits(&waiting));
        assert!(!waiting.is_over());
        assert!(waiting.is_over());
        assert!(waiting.lock().names.is_empty() && waiting.lock().task.is_none());
        let mut started = false;
        let place = waiting.enter(&NAME, || {
            started = true;
            tokio::spawn(pending())
        });
        assert!(place.is_some() && started);
    }

    #[tokio::test]
    async fn who_never_hears_keeps_nothing() {
        let waiting = Waiting::default();
        let place = waits(&waiting);
        waiting.never_hears();
        assert!(place.told().now_or_never().is_none());
        assert!(waiting.enter(&NAME, || unreachable!()).is_none());
        assert!(waiting.lock().names.is_empty());
    }

    #[tokio::test]
    async fn when_what_listened_has_ended_with_its_runtime_it_is_started_again() {
        let waiting = Waiting::default();
        let place = waits(&waiting);
        waiting.hears();
        assert!(place.told().now_or_never().is_some());
        waiting.lock().task.as_ref().unwrap().abort();
        while !waiting.lock().task.as_ref().unwrap().is_finished() {
            tokio::task::yield_now().await;
        }
        drop(waits(&waiting));
        assert!(!waiting.heard());
        assert!(!waiting.lock().task.as_ref().unwrap().is_finished());
    }
}

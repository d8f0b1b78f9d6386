//! [`Names`]: which leases are in use in this process, per `Lease`, and who waits for them here.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::LeaseName;

/// The names under which something runs or is being tried here: two ticks of one process exclude each other.
///
/// Who waits for a name waits here first, in the order of coming, so that one process asks the store for a lease once and
/// not once for each of its tasks.
#[derive(Clone, Default)]
pub(crate) struct Names {
    taken: Arc<Mutex<HashMap<LeaseName, VecDeque<oneshot::Sender<Reservation>>>>>,
}

/// A name that is taken until this is dropped. It then goes to whoever waited longest.
pub(crate) struct Reservation(Option<(LeaseName, Names)>);

impl Names {
    /// Takes the name, unless it is taken.
    pub(crate) fn reserve(&self, name: &LeaseName) -> Option<Reservation> {
        match self.lock().entry(name.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                vacant.insert(VecDeque::new());
                Some(self.reservation(name.clone()))
            }
        }
    }

    /// Takes the name as soon as it is free and everybody who came before has had it. Dropping the future leaves the queue.
    pub(crate) async fn wait(&self, name: &LeaseName) -> Reservation {
        loop {
            let turn = match self.lock().entry(name.clone()) {
                Entry::Vacant(vacant) => {
                    vacant.insert(VecDeque::new());
                    return self.reservation(name.clone());
                }
                Entry::Occupied(mut occupied) => {
                    let (sender, turn) = oneshot::channel();
                    occupied.get_mut().push_back(sender);
                    turn
                }
            };
            // It is not left without an answer, but for a name whose reservation was forgotten.
            if let Ok(reservation) = turn.await {
                return reservation;
            }
        }
    }

    fn reservation(&self, name: LeaseName) -> Reservation {
        Reservation(Some((name, self.clone())))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LeaseName, VecDeque<oneshot::Sender<Reservation>>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// Whether somebody waits for it.
    pub(crate) fn is_awaited(&self) -> bool {
        let Some((name, names)) = &self.0 else { return false };
        names.lock().get(name).is_some_and(|queue| !queue.is_empty())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        while let Some((name, names)) = self.0.take() {
            let next = {
                let mut taken = names.lock();
                let next = taken.get_mut(&name).and_then(VecDeque::pop_front);
                if next.is_none() {
                    taken.remove(&name);
                }
                next
            };
            let Some(next) = next else { return };
            // Who left the queue gives it back, and the next one is asked.
            if let Err(mut back) = next.send(names.reservation(name)) {
                self.0 = back.0.take();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    static NAME: LeaseName = LeaseName::from_static("job");

    #[test]
    fn a_name_goes_to_whoever_waited_longest_and_is_forgotten_at_the_end() {
        let names = Names::default();
        let first = names.reserve(&NAME).unwrap();
        assert!(names.reserve(&NAME).is_none());
        let mut queue = [Box::pin(names.wait(&NAME)), Box::pin(names.wait(&NAME))];
        for waiting in &mut queue {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        drop(first);
        assert!(names.reserve(&NAME).is_none(), "nobody overtakes who waits");
        let [second, third] = &mut queue;
        assert!(third.as_mut().now_or_never().is_none(), "it came later");
        let turn = second.as_mut().now_or_never().expect("it came first");
        assert!(third.as_mut().now_or_never().is_none());
        drop(turn);
        drop(third.as_mut().now_or_never().expect("it is its turn"));
        assert!(names.lock().is_empty());
    }

    #[test]
    fn who_leaves_the_queue_keeps_nobody_waiting_also_after_it_was_its_turn() {
        let names = Names::default();
        let first = names.reserve(&NAME).unwrap();
        let mut queue: Vec<_> = (0..10_000).map(|_| Box::pin(names.wait(&NAME))).collect();
        for waiting in &mut queue {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        drop(first);
        // It is the turn of the first of them, who does not look any more; and then of all the others.
        let last = queue.pop().unwrap();
        queue.reverse();
        drop(queue);
        assert!(last.now_or_never().is_some());
        assert!(names.lock().is_empty());
    }
}

//! [`Names`]: which leases are in use in this process, per `Lease`.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::LeaseName;

/// The names under which something runs or is being tried here: two ticks of one process exclude each other.
#[derive(Clone, Default)]
pub(crate) struct Names {
    taken: Arc<Mutex<HashSet<LeaseName>>>,
}

/// A name that is taken until this is dropped.
pub(crate) struct Reservation {
    name: LeaseName,
    names: Names,
}

impl Names {
    /// Takes the name, unless it is taken.
    pub(crate) fn reserve(&self, name: &LeaseName) -> Option<Reservation> {
        let free = self.lock().insert(name.clone());
        free.then(|| Reservation {
            name: name.clone(),
            names: self.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<LeaseName>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.names.lock().remove(&self.name);
    }
}

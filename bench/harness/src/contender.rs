//! [`Contender`]: what a library must be able to do to be measured.

use std::future::Future;
use std::time::Duration;

use anyhow::bail;

/// Where and how a library is to work.
#[derive(Debug, Clone)]
pub struct Place {
    /// The server's URL, or the path of a file.
    pub url: String,
    /// How long what is taken lasts, where that can be said.
    pub ttl: Duration,
    /// Whether releases tell who waits, where that is a choice.
    pub notify: bool,
}

/// One client of a library.
///
/// All names belong to one table, or to one server where there is no table.
pub trait Contender: Sized + Send + 'static {
    /// What is held.
    type Guard: Send + 'static;

    /// Whether what is held stays so while nobody does anything, for longer than its time.
    const RENEWS: bool;

    /// Threads of the runtime besides those that the library starts: two in all are what the machine is asked for.
    #[must_use]
    fn workers(_clients: usize) -> usize {
        2
    }

    /// Makes the table.
    fn prepare(place: &Place) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// One pod with so many clients, which share whatever the library lets them share, and a connection for each.
    fn open(place: &Place, clients: usize) -> impl Future<Output = anyhow::Result<Vec<Self>>> + Send;

    /// Tries once. `None` if somebody else has it.
    fn try_acquire(&mut self, name: &str) -> impl Future<Output = anyhow::Result<Option<Self::Guard>>> + Send;

    /// Waits for it as long as it takes.
    fn acquire(&mut self, _name: &str) -> impl Future<Output = anyhow::Result<Self::Guard>> + Send {
        async { bail!("there is no way to wait for it") }
    }

    /// Gives it back.
    fn release(&mut self, guard: Self::Guard) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Renews it once, now.
    fn renew(&mut self, _guard: &mut Self::Guard) -> impl Future<Output = anyhow::Result<()>> + Send {
        async { bail!("there is no way to renew it by hand") }
    }

    /// Whether it was lost meanwhile.
    fn is_lost(_guard: &Self::Guard) -> bool {
        false
    }

    /// How long it lasts if nothing renews it any more, where the library renews together what is due together and says so.
    fn lasts(_guard: &Self::Guard) -> Option<Duration> {
        None
    }
}

//! [`Event`]s and who gets them: `tracing`, and an [`Observer`] of your own.
//!
//! They go through a bounded channel to a thread of their own, so that a blocked log writer stops no heartbeat.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::{Holder, LeaseName, Release, RepoError, Skip, Stop, Token};

/// How many events wait for a slow observer before further ones are dropped and counted.
pub const EVENT_QUEUE: usize = 1_024;

/// How long the thread rests once it has delivered all there was. Whoever sends an event meanwhile need not wake it, and a wake
/// costs more than all the rest of sending.
const REST: Duration = Duration::from_millis(1);

/// Something worth knowing of a lease.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A tenure began.
    Acquired {
        /// Which lease.
        name: LeaseName,
        /// Which tenure.
        holder: Holder,
        /// Its fencing token.
        token: Token,
    },
    /// A job was not started.
    Skipped {
        /// Which lease.
        name: LeaseName,
        /// Why.
        skip: Skip,
    },
    /// A renewal was answered.
    Renewed {
        /// Which lease.
        name: LeaseName,
        /// Its fencing token.
        token: Token,
        /// How long the answer took.
        took: Duration,
    },
    /// A renewal had no answer. It is tried again while there is time.
    RenewFailed {
        /// Which lease.
        name: LeaseName,
        /// Its fencing token.
        token: Token,
        /// What it ran into.
        error: RepoError,
        /// How long f may still run without a renewal.
        remaining: Duration,
    },
    /// f was told to stop.
    Stopped {
        /// Which lease.
        name: LeaseName,
        /// Its fencing token.
        token: Token,
        /// Why.
        stop: Stop,
    },
    /// The time to drop f has come, and it had not ended.
    Overrun {
        /// Which lease.
        name: LeaseName,
        /// Its fencing token.
        token: Token,
    },
    /// A tenure ended, and its release was tried once.
    Ended {
        /// Which lease.
        name: LeaseName,
        /// Its fencing token.
        token: Token,
        /// What became of the release.
        release: Result<Release, RepoError>,
    },
    /// A job that is repeated returned an error. It is repeated all the same.
    Failed {
        /// Which lease.
        name: LeaseName,
        /// The fencing token it ran under.
        token: Token,
        /// What it said.
        error: String,
    },
    /// The keeper died.
    KeeperDied,
}

impl Event {
    /// Writes the event to the current `tracing` subscriber: target `lease`, the name of the variant as message.
    fn trace(&self) {
        match self {
            Self::Acquired { name, holder, token } => {
                tracing::info!(target: "lease", lease = name.as_str(), holder = holder.as_str(), token = token.get(), "acquired");
            }
            Self::Skipped {
                name,
                skip: skip @ (Skip::Busy(_) | Skip::BusyHere),
            } => {
                tracing::debug!(target: "lease", lease = name.as_str(), cause = skip.as_str(), detail = %skip, "skipped");
            }
            Self::Skipped {
                name,
                skip: Skip::Store(error),
            } => {
                let source = source(error);
                tracing::warn!(target: "lease", lease = name.as_str(), cause = "store", kind = error.kind().as_str(), %error, source, "skipped");
            }
            Self::Skipped { name, skip } => {
                tracing::warn!(target: "lease", lease = name.as_str(), cause = skip.as_str(), "skipped");
            }
            Self::Renewed { name, token, took } => {
                tracing::debug!(target: "lease", lease = name.as_str(), token = token.get(), took_us = micros(*took), "renewed");
            }
            Self::RenewFailed {
                name,
                token,
                error,
                remaining,
            } => {
                let source = source(error);
                tracing::warn!(target: "lease", lease = name.as_str(), token = token.get(), kind = error.kind().as_str(), %error, source, remaining_us = micros(*remaining), "renew failed");
            }
            Self::Stopped {
                name,
                token,
                stop: stop @ Stop::ShutDown,
            } => {
                tracing::info!(target: "lease", lease = name.as_str(), token = token.get(), cause = stop.as_str(), "stopped");
            }
            Self::Stopped { name, token, stop } => {
                tracing::warn!(target: "lease", lease = name.as_str(), token = token.get(), cause = stop.as_str(), detail = %stop, "stopped");
            }
            Self::Overrun { name, token } => {
                tracing::warn!(target: "lease", lease = name.as_str(), token = token.get(), "overrun");
            }
            Self::Ended {
                name,
                token,
                release: Ok(release),
            } => {
                tracing::info!(target: "lease", lease = name.as_str(), token = token.get(), ?release, "ended");
            }
            Self::Ended {
                name,
                token,
                release: Err(error),
            } => {
                let source = source(error);
                tracing::warn!(target: "lease", lease = name.as_str(), token = token.get(), kind = error.kind().as_str(), %error, source, "ended");
            }
            Self::Failed { name, token, error } => {
                tracing::error!(target: "lease", lease = name.as_str(), token = token.get(), error, "failed");
            }
            Self::KeeperDied => tracing::error!(target: "lease", "keeper died"),
        }
    }
}

/// Gets every [`Event`], on a thread that nothing else waits for. It may block; then later events are dropped and counted.
pub trait Observer: Send + Sync + 'static {
    /// Takes an event. A panic in it is caught.
    fn observe(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync + 'static> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// The keeper's end of the channel.
#[derive(Clone)]
pub(crate) struct EventSink {
    sender: SyncSender<Event>,
    dropped: Arc<AtomicU64>,
}

impl EventSink {
    /// Starts the thread. Without one, every event is dropped and counted.
    ///
    /// The subscriber that is current here gets the events.
    pub(crate) fn start(observer: Option<Arc<dyn Observer>>) -> Self {
        let (sender, receiver) = sync_channel(EVENT_QUEUE);
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        let deliver =
            move || tracing::dispatcher::with_default(&subscriber, || deliver(&receiver, observer.as_deref()));
        // If no thread can be had, the receiver is gone with it, and the leases work all the same.
        let _ = std::thread::Builder::new().name("lease-events".into()).spawn(deliver);
        Self {
            sender,
            dropped: Arc::default(),
        }
    }

    pub(crate) fn send(&self, event: Event) {
        if self.sender.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

fn deliver(events: &Receiver<Event>, observer: Option<&dyn Observer>) {
    let tell = |event: Event| {
        // A subscriber or observer that panics loses that event, not those after it.
        let _ = catch_unwind(AssertUnwindSafe(|| event.trace()));
        if let Some(observer) = observer {
            let _ = catch_unwind(AssertUnwindSafe(|| observer.observe(&event)));
        }
    };
    while let Ok(event) = events.recv() {
        tell(event);
        events.try_iter().for_each(tell);
        std::thread::sleep(REST);
    }
}

/// The causes behind an error, from the nearest to the deepest.
fn source(error: &RepoError) -> String {
    let first = std::error::Error::source(error);
    let chain = std::iter::successors(first, |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

//! [`EventSink`]: the way of events to the thread that tells them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use tokio::runtime::Handle;

use super::metrics::{Ledger, Meter};
use super::{Event, Observer};
use crate::LeaseName;
use crate::held::Tenancy;

/// How many events wait for a slow observer before further ones are dropped and counted.
pub const EVENT_QUEUE: usize = 1_024;

/// How long the thread rests once it has delivered all there was. Whoever sends an event meanwhile need not wake it, and a wake
/// costs more than all the rest of sending.
const REST: Duration = Duration::from_millis(1);

/// Who is told, beside `tracing`.
#[derive(Default)]
pub(crate) struct Audience {
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// The leases that have metrics of their own.
    pub(crate) per_lease: Vec<LeaseName>,
}

/// The keeper's end of the channel.
#[derive(Clone)]
pub(crate) struct EventSink {
    sender: SyncSender<Event>,
    dropped: Arc<AtomicU64>,
    ledger: Ledger,
}

impl EventSink {
    /// Starts the thread. Without one, every event is dropped and counted.
    ///
    /// The subscriber and the metrics recorder that are current here get the events. In `runtime`, if there is one, the thread
    /// reads the same paused time as the keeper.
    pub(crate) fn start(audience: &Audience, runtime: Option<Handle>) -> Self {
        let (sender, receiver) = sync_channel(EVENT_QUEUE);
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        let dropped = Arc::<AtomicU64>::default();
        let (ledger, meter) = Meter::new(&audience.per_lease, dropped.clone());
        let observer = audience.observer.clone();
        let deliver = move || {
            let _inside = runtime.as_ref().map(Handle::enter);
            tracing::dispatcher::with_default(&subscriber, || deliver(&receiver, observer.as_deref(), meter));
        };
        // If no thread can be had, the receiver is gone with it, and the leases work all the same.
        let _ = std::thread::Builder::new().name("lease-events".into()).spawn(deliver);
        Self {
            sender,
            dropped,
            ledger,
        }
    }

    pub(crate) fn send(&self, event: Event) {
        if self.sender.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A tenure that metrics are to look at for as long as it is there, whatever becomes of its events.
    pub(crate) fn granted(&self, tenancy: &Arc<Tenancy>) {
        self.ledger.enter(tenancy);
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

fn deliver(events: &Receiver<Event>, observer: Option<&dyn Observer>, mut meter: Meter) {
    loop {
        let next = match meter.look_in() {
            Some(time) => events.recv_timeout(time),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(event) => {
                // Bounded, so that a flood of events does not keep the meter from looking.
                for event in std::iter::once(event).chain(events.try_iter().take(EVENT_QUEUE)) {
                    tell(&event, observer, &mut meter);
                }
                look(&mut meter);
                std::thread::sleep(REST);
            }
            Err(RecvTimeoutError::Timeout) => look(&mut meter),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// A recorder, subscriber or observer that panics loses that event, not those after it.
fn tell(event: &Event, observer: Option<&dyn Observer>, meter: &mut Meter) {
    let _ = catch_unwind(AssertUnwindSafe(|| meter.count(event)));
    let _ = catch_unwind(AssertUnwindSafe(|| event.trace()));
    if let Some(observer) = observer {
        let _ = catch_unwind(AssertUnwindSafe(|| observer.observe(event)));
    }
}

fn look(meter: &mut Meter) {
    let _ = catch_unwind(AssertUnwindSafe(|| meter.look()));
}

//! [`KeeperLink`]: how everything else speaks to the keeper.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::held::Tenancy;
use crate::names::Reservation;
use crate::{Claim, Incumbent, LeaseName, Moment, Release, RepoError, Timing};

/// Which tenure of a `Lease`.
pub(crate) type TenureId = u64;

pub(crate) enum Command {
    /// Begin a tenure.
    Ask {
        id: TenureId,
        claim: Claim,
        timing: Timing,
        reply: oneshot::Sender<Given>,
    },
    /// Whoever asked is gone.
    Abandoned { id: TenureId },
    /// f starts.
    Started { id: TenureId, at: Moment },
    /// f is gone.
    Finished {
        id: TenureId,
        ran: bool,
        reply: Option<oneshot::Sender<Result<Release, RepoError>>>,
        /// The name, if somebody waits for it here: until the release is answered he would come too early.
        reservation: Option<Reservation>,
    },
    /// Wake somebody who waits for his next try.
    WakeAt { at: Moment, wake: oneshot::Sender<()> },
    /// Wake him when the store hints that the lease may be free.
    WakeWhenFreed { name: LeaseName, wake: oneshot::Sender<()> },
    /// Start nothing any more, and end what runs.
    ShutDown {
        grace: Duration,
        reply: oneshot::Sender<Vec<LeaseName>>,
    },
}

/// The answer to [`Command::Ask`].
pub(crate) enum Given {
    Granted(Arc<Tenancy>),
    Busy(Option<Incumbent>),
    Failed(RepoError),
    ShuttingDown,
}

/// Sends commands; the keeper ends when the last one is gone. Nothing here blocks or needs a runtime.
#[derive(Clone)]
pub(crate) struct KeeperLink(UnboundedSender<Command>);

impl KeeperLink {
    pub(crate) fn new() -> (Self, UnboundedReceiver<Command>) {
        let (sender, receiver) = unbounded_channel();
        (Self(sender), receiver)
    }

    /// To a dead keeper nothing is said: it has told every tenure when it died.
    pub(crate) fn send(&self, command: Command) {
        drop(self.0.send(command));
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.0.is_closed()
    }
}

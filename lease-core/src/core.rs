//! [`Core`]: what the clones of a `Lease` and its jobs share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::dyn_repo::DynRepo;
use crate::keeper::{Command, Given, Keeper, KeeperLink, TenureId};
use crate::names::{Names, Reservation};
use crate::observe::{Audience, Event, EventSink};
use crate::tenure::TenureMutant;
use crate::{Claim, Clock, Guard, Holder, Label, LeaseName, Moment, Operation, RepoError, RepoErrorKind, Skip, Timing};

/// How long who waits rests while no keeper can be started.
const REST: Duration = Duration::from_millis(20);

pub(crate) struct Core {
    pub(crate) repo: Arc<dyn DynRepo>,
    pub(crate) label: Label,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) audience: Audience,
    pub(crate) keeper_on: Option<Handle>,
    events: OnceLock<EventSink>,
    keeper: Mutex<Option<KeeperLink>>,
    pub(crate) names: Names,
    /// From now on nothing starts.
    pub(crate) closing: CancellationToken,
    ids: AtomicU64,
}

impl Core {
    pub(crate) fn new(
        repo: Arc<dyn DynRepo>,
        label: Label,
        clock: Arc<dyn Clock>,
        audience: Audience,
        keeper_on: Option<Handle>,
    ) -> Self {
        Self {
            repo,
            label,
            clock,
            audience,
            keeper_on,
            events: OnceLock::new(),
            keeper: Mutex::new(None),
            names: Names::default(),
            closing: CancellationToken::new(),
            ids: AtomicU64::new(0),
        }
    }

    /// One try, under a holder of its own. Without a lease the name is still reserved.
    pub(crate) async fn ask(
        &self,
        name: &LeaseName,
        timing: Timing,
        reservation: Reservation,
    ) -> Result<Guard, (Skip, Reservation)> {
        if self.closing.is_cancelled() {
            return Err((Skip::ShuttingDown, reservation));
        }
        let keeper = match self.keeper() {
            Ok(keeper) => keeper,
            Err(error) => return Err((Skip::Store(error.with_lease(name)), reservation)),
        };
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let claim = Claim::new(name.clone(), self.holder(timing), timing.ttl());
        let (reply, given) = oneshot::channel();
        keeper.send(Command::Ask {
            id,
            claim,
            timing,
            reply,
        });
        let asked = Asked {
            keeper,
            id,
            answered: false,
        };
        let skip = match given.await {
            Ok(Given::Granted(tenancy)) => return Ok(Guard::new(tenancy, asked.answered(), id, reservation)),
            Ok(Given::Busy(incumbent)) => Skip::Busy(incumbent),
            Ok(Given::Failed(error)) => Skip::Store(error),
            Ok(Given::ShuttingDown) => Skip::ShuttingDown,
            Err(_) => Skip::Store(keeper_error("the keeper died meanwhile").with_lease(name)),
        };
        Err((skip, reservation))
    }

    /// A new holder for each try. One that was released must never be acquired with again.
    fn holder(&self, timing: Timing) -> Holder {
        let always_the_same = || Holder::new(format!("{}/again", self.label)).ok();
        let again = timing.breaks(TenureMutant::ReusesTheHolder).then(always_the_same);
        again.flatten().unwrap_or_else(|| self.label.new_holder())
    }

    /// Resolves at `at`. The keeper wakes us: the caller may be on any executor.
    ///
    /// Without a keeper it comes after a rest in which the thread is blocked, whatever `at` is: nobody can wake us then, and
    /// whoever asks again must not do so as fast as he can.
    pub(crate) async fn sleep_until(&self, at: Moment) {
        let (wake, woken) = oneshot::channel();
        match self.keeper() {
            Ok(keeper) => {
                keeper.send(Command::WakeAt { at, wake });
                // An error means that the keeper died. The next try starts another one, or says why not.
                drop(woken.await);
            }
            Err(_) => std::thread::sleep(REST),
        }
    }

    /// Answers when the store hints that the lease may be free. An error means that the keeper died.
    pub(crate) fn freed(&self, name: &LeaseName) -> oneshot::Receiver<()> {
        let (wake, woken) = oneshot::channel();
        if let Ok(keeper) = self.keeper() {
            keeper.send(Command::WakeWhenFreed {
                name: name.clone(),
                wake,
            });
        }
        woken
    }

    pub(crate) fn events(&self) -> &EventSink {
        self.events
            .get_or_init(|| EventSink::start(&self.audience, self.keeper_on.clone()))
    }

    pub(crate) fn skipped(&self, name: &LeaseName, skip: &Skip) {
        self.events().send(Event::Skipped {
            name: name.clone(),
            skip: skip.clone(),
        });
    }

    /// The keeper, if one was started and lives.
    pub(crate) fn running_keeper(&self) -> Option<KeeperLink> {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        keeper.clone().filter(|keeper| !keeper.is_dead())
    }

    /// The keeper, started at the first call, and again after its death: a job must not stop until a restart.
    fn keeper(&self) -> Result<KeeperLink, RepoError> {
        let mut running = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = running.clone().filter(|keeper| !keeper.is_dead()) {
            return Ok(keeper);
        }
        let (link, commands) = KeeperLink::new();
        let keeper = Keeper::new(self.repo.clone(), self.clock.clone(), self.events().clone());
        match &self.keeper_on {
            Some(runtime) => drop(runtime.spawn(keeper.run(commands))),
            None => {
                let start = || {
                    let runtime = Builder::new_current_thread().enable_all().build()?;
                    // A task, and not what is blocked on: to wake that one costs a look at all sockets.
                    let keep = move || drop(runtime.block_on(runtime.spawn(keeper.run(commands))));
                    std::thread::Builder::new().name("lease-keeper".into()).spawn(keep)
                };
                start().map_err(|error| keeper_error("the keeper's thread can't be started").with_source(error))?;
            }
        }
        *running = Some(link.clone());
        Ok(link)
    }
}

/// An ask that has not been answered. Dropped, it tells the keeper that nobody waits.
struct Asked {
    keeper: KeeperLink,
    id: TenureId,
    answered: bool,
}

impl Asked {
    fn answered(mut self) -> KeeperLink {
        self.answered = true;
        self.keeper.clone()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.answered {
            self.keeper.send(Command::Abandoned { id: self.id });
        }
    }
}

fn keeper_error(what: &'static str) -> RepoError {
    RepoError::new(RepoErrorKind::Other, Operation::Acquire).with_source(what)
}

//! The keeper: the only loop. It drives all tenures of one `Lease` and alone talks to the repo.
//!
//! What to do is decided in [`crate::tenure`]; this brings it events and carries out its effects. One slow statement
//! never delays another lease, since statements run side by side and nothing here waits for one; but for those that are renewed in
//! one statement, which share its fate for its limit, and are then sent anew.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use crate::dyn_repo::{DynRepo, Hint};
use crate::observe::{Event, EventSink};
use crate::tenure::{Event as TenureEvent, Phase, TenureMutant};
use crate::{Clock, LeaseName, Moment, Release, RepoError, Stop};

mod call;
mod company;
mod entry;
mod link;
mod will;

use call::{Answered, Call};
use entry::Entry;
pub(crate) use link::{Command, Given, KeeperLink, TenureId};

/// The longest sleep before the clock is read again: a timer may stand still while the machine is suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// How long after a shutdown's grace f may take to be dropped, before its lease is given up as it is.
const DROP_GRACE: Duration = Duration::from_millis(500);
/// How many answers and commands are taken before timers are looked at again.
const BATCH: usize = 64;

pub(crate) struct Keeper {
    context: Context,
    /// Each in a box, since the map's own nodes are half empty.
    entries: BTreeMap<TenureId, Box<Entry>>,
    /// When each tenure wants its next tick.
    timers: BTreeSet<(Moment, TenureId)>,
    alarms: BTreeMap<Moment, Vec<Alarm>>,
    /// A quarter of the smallest margin among the tenures.
    slice: Duration,
    shutdowns: Vec<Shutdown>,
    /// Broken on purpose.
    waits_for_each_answer: bool,
}

/// What the tenures share.
struct Context {
    repo: Arc<dyn DynRepo>,
    clock: Arc<dyn Clock>,
    events: EventSink,
    calls: FuturesUnordered<Call>,
    /// The tenures whose renewal is to be sent.
    due: Vec<TenureId>,
    /// Answers for those who wait. They leave at the end of a turn: who is woken may take the processor from the keeper, and
    /// with it from all that are still to be told.
    outbox: Vec<Outgoing>,
    /// For those who wait for a hint. They are looked at here since a store may have a connection for hints, which the runtime
    /// that opened it drives.
    hints: FuturesUnordered<Hint>,
}

/// An answer on its way out.
enum Outgoing {
    Given(oneshot::Sender<Given>, Given),
    Settled(oneshot::Sender<Result<Release, RepoError>>, Result<Release, RepoError>),
}

impl Outgoing {
    /// If nobody is there any more, nobody waits for it; of a grant, `Abandoned` is on its way.
    fn leave(self) {
        match self {
            Self::Given(reply, given) => drop(reply.send(given)),
            Self::Settled(reply, release) => drop(reply.send(release)),
        }
    }
}

/// The keeper's sleep, from one turn on until it ends.
struct Sleep {
    until: Moment,
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Something the keeper does at a time, beside ticks.
enum Alarm {
    Wake(oneshot::Sender<()>),
    GraceOver,
    Forsake,
}

/// A shutdown under way, and the names that it had to give up.
struct Shutdown {
    /// Taken once it is answered; the shutdown itself lasts.
    reply: Option<oneshot::Sender<Vec<LeaseName>>>,
    forsaken: Vec<LeaseName>,
}

impl Keeper {
    pub(crate) fn new(repo: Arc<dyn DynRepo>, clock: Arc<dyn Clock>, events: EventSink) -> Self {
        Self {
            context: Context {
                repo,
                clock,
                events,
                calls: FuturesUnordered::new(),
                due: Vec::new(),
                outbox: Vec::new(),
                hints: FuturesUnordered::new(),
            },
            entries: BTreeMap::new(),
            timers: BTreeSet::new(),
            alarms: BTreeMap::new(),
            slice: LONGEST_SLEEP,
            shutdowns: Vec::new(),
            waits_for_each_answer: false,
        }
    }

    /// Runs until every `Lease` and guard is gone and no tenure has anything left to do.
    pub(crate) async fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        let (mut open, mut sleep) = (true, None);
        loop {
            if self.waits_for_each_answer
                && let Some(answers) = self.context.calls.next().await
            {
                self.answers(answers);
            }
            // Timers come first, so that a stop never waits behind answers or commands.
            self.ring();
            self.context.outbox.drain(..).for_each(Outgoing::leave);
            self.finish_shutdowns();
            self.renew();
            // Looked at after the timers, since one of them may have ended the last tenure: nothing would wake us.
            if !open && self.entries.is_empty() {
                return;
            }
            self.sleep_no_longer_than(self.wake_at(), &mut sleep);
            tokio::select! {
                biased;
                () = ended(&mut sleep) => sleep = None,
                Some(answers) = self.context.calls.next() => self.answers(answers),
                Some(()) = self.context.hints.next() => {}
                command = commands.recv(), if open => match command {
                    Some(command) => self.command(command),
                    None => open = false,
                },
            }
            self.take_what_is_there(&mut commands);
        }
    }

    /// Takes some of the other answers, hints and commands that have come, so that a flood of any keeps out neither the
    /// others nor the timers.
    fn take_what_is_there(&mut self, commands: &mut UnboundedReceiver<Command>) {
        for _ in 0..BATCH {
            let Some(Some(answers)) = self.context.calls.next().now_or_never() else {
                break;
            };
            self.answers(answers);
        }
        for _ in 0..BATCH {
            let Some(Some(())) = self.context.hints.next().now_or_never() else {
                break;
            };
        }
        for _ in 0..BATCH {
            let Ok(command) = commands.try_recv() else { break };
            self.command(command);
        }
    }

    fn wake_at(&self) -> Option<Moment> {
        let tick = self.timers.first().map(|(at, _)| *at);
        let alarm = self.alarms.first_key_value().map(|(at, _)| *at);
        let next = tick.into_iter().chain(alarm).min()?;
        Some(next.min(self.context.clock.now() + self.slice))
    }

    /// A sleep that ends sooner than it must does no harm, and is kept: to begin one at each turn would cost more than the turn.
    fn sleep_no_longer_than(&self, wake_at: Option<Moment>, sleep: &mut Option<Sleep>) {
        if let Some(until) = wake_at
            && sleep.as_ref().is_none_or(|sleep| until < sleep.until)
        {
            let future = self.context.clock.sleep_until(until);
            *sleep = Some(Sleep { until, future });
        }
    }

    /// Does what is due.
    fn ring(&mut self) {
        let now = self.context.clock.now();
        while let Some((at, id)) = self.timers.first().copied()
            && at <= now
        {
            self.tell(id, now, TenureEvent::Tick);
        }
        while let Some(first) = self.alarms.first_entry()
            && *first.key() <= now
        {
            for alarm in first.remove() {
                match alarm {
                    Alarm::Wake(wake) => drop(wake.send(())),
                    Alarm::GraceOver => self.tell_all(now, TenureEvent::GraceOver),
                    Alarm::Forsake => self.forsake(now),
                }
            }
        }
    }

    fn command(&mut self, command: Command) {
        let now = self.context.clock.now();
        match command {
            Command::Ask { reply, .. } if !self.shutdowns.is_empty() => drop(reply.send(Given::ShuttingDown)),
            Command::Ask {
                id,
                claim,
                timing,
                reply,
            } => {
                self.slice = self.slice.min(timing.margin() / 4);
                self.waits_for_each_answer = timing.breaks(TenureMutant::WaitsForEachAnswer);
                let entry = Entry::ask(claim, timing, now, reply);
                self.context.calls.push(entry.acquire(&self.context, id, now));
                self.entries.insert(id, Box::new(entry));
            }
            Command::Abandoned { id } => {
                if let Some(tenancy) = self.entries.get(&id).and_then(|entry| entry.tenancy()) {
                    // Its grant reached nobody, so there is no guard that would say so.
                    tenancy.ended.store(true, Ordering::SeqCst);
                }
                self.tell(id, now, TenureEvent::Abandoned);
            }
            Command::Started { id, at } => self.tell(id, at, TenureEvent::Started),
            Command::Finished {
                id,
                ran,
                reply,
                reservation,
            } => {
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.settle = reply;
                    entry.reservation = reservation;
                }
                self.tell(id, now, TenureEvent::Finished { ran });
            }
            Command::WakeAt { at, wake } => self.alarm(at, Alarm::Wake(wake)),
            Command::WakeWhenFreed { name, wake } => {
                self.context.hints.push(hinting(self.context.repo.freed(name), wake))
            }
            Command::ShutDown { grace, reply } => {
                self.shutdowns.push(Shutdown {
                    reply: Some(reply),
                    forsaken: Vec::new(),
                });
                self.tell_all(now, TenureEvent::ShutDown);
                self.alarm(now + grace, Alarm::GraceOver);
                self.alarm(now + grace + DROP_GRACE, Alarm::Forsake);
            }
        }
    }

    fn alarm(&mut self, at: Moment, alarm: Alarm) {
        self.alarms.entry(at).or_default().push(alarm);
    }

    fn answered(&mut self, answered: Answered) {
        let now = self.context.clock.now();
        let id = answered.id;
        if let Some(entry) = self.entries.get_mut(&id) {
            let event = entry.answered(&self.context, now, answered);
            self.tell(id, now, event);
        }
    }

    /// Gives an event to a tenure, carries out its effects, and notes when it wants its next tick.
    fn tell(&mut self, id: TenureId, now: Moment, event: TenureEvent) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.handle(&mut self.context, id, now, event);
        if let Some(due) = entry.tick_at.take() {
            self.timers.remove(&(due, id));
        }
        entry.tick_at = entry.tenure.next_at();
        self.timers.extend(entry.tick_at.map(|due| (due, id)));
        if entry.tenure.phase() == Phase::Ended {
            self.entries.remove(&id);
            if self.entries.is_empty() {
                self.slice = LONGEST_SLEEP;
            }
        }
    }

    fn tell_all(&mut self, now: Moment, event: TenureEvent) {
        let ids: Vec<TenureId> = self.entries.keys().copied().collect();
        for id in ids {
            self.tell(id, now, event);
        }
    }

    /// The grace is over, and what still runs could not be dropped: it is inside a poll, or was told to go on.
    fn forsake(&mut self, now: Moment) {
        let running = self.entries.iter().filter(|(_, entry)| entry.is_running());
        let (ids, names): (Vec<_>, Vec<_>) = running.map(|(id, entry)| (*id, entry.name().clone())).unzip();
        for shutdown in &mut self.shutdowns {
            shutdown.forsaken.extend(names.iter().cloned());
        }
        for id in ids {
            self.tell(id, now, TenureEvent::Forsaken);
        }
    }

    /// A shutdown is done when nothing runs and each release was answered, be it by an error.
    fn finish_shutdowns(&mut self) {
        if self.entries.values().all(|entry| entry.is_quiet()) {
            for shutdown in &mut self.shutdowns {
                if let Some(reply) = shutdown.reply.take() {
                    drop(reply.send(std::mem::take(&mut shutdown.forsaken)));
                }
            }
        }
    }
}

impl Drop for Keeper {
    /// With tenures left, this is a death: a panic, or the end of the runtime it was spawned on.
    fn drop(&mut self) {
        let orphans: Vec<_> = self.entries.values().filter_map(|entry| entry.tenancy()).collect();
        if !self.entries.is_empty() {
            self.context.events.send(Event::KeeperDied);
        }
        for tenancy in orphans.iter().filter(|tenancy| tenancy.stop().is_none()) {
            self.context.events.send(Event::Stopped {
                name: tenancy.name.clone(),
                token: tenancy.token,
                stop: Stop::Keeper,
            });
        }
        will::execute(self.context.clock.clone(), orphans);
    }
}

/// Wakes who waits when the store hints; ends when he is gone.
fn hinting(hint: Hint, mut wake: oneshot::Sender<()>) -> Hint {
    Box::pin(async move {
        let hinted = tokio::select! {
            biased;
            () = wake.closed() => false,
            () = hint => true,
        };
        if hinted {
            // An error means that he has just left.
            let _ = wake.send(());
        }
    })
}

/// Resolves when the sleep ends; never without one.
async fn ended(sleep: &mut Option<Sleep>) {
    match sleep {
        Some(sleep) => sleep.future.as_mut().await,
        None => pending().await,
    }
}

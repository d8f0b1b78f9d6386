//! [`World`]: true time, the store, the faults on the way to it, and the record of all that was seen.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lease_core::{Clock, Held, LeaseName, MemoryRepo, Moment, Row, TokioClock};

use super::dice::Dice;
use super::faults::{Course, FAULTS, Rates};
use super::plan::Plan;
use super::seen::{Claimed, History, HolderId, RowSeen, Rows, Seen, Tick, What, Who};
use super::{Broken, seen};

/// The names of the leases.
pub const NAMES: [LeaseName; seen::MOST_NAMES] = [
    LeaseName::from_static("first"),
    LeaseName::from_static("second"),
    LeaseName::from_static("third"),
];

/// The store's clock when the world begins: microseconds since 1970.
const EPOCH: i64 = 1_700_000_000_000_000;
/// How many clones of `Held` are kept for each name, to be asked later.
const CLONES: usize = 5;
/// One tick of the world is a millisecond of the runtime's timer, its smallest step.
const TICK: Duration = Duration::from_millis(1);

/// What everything of a world shares.
pub struct World {
    /// What kind of world.
    pub plan: Plan,
    /// The store itself.
    pub store: MemoryRepo,
    timer: TokioClock,
    start: Moment,
    healed: AtomicBool,
    over: AtomicBool,
    state: Mutex<State>,
}

struct State {
    history: History,
    holders: HashMap<String, HolderId>,
    clones: [Vec<Kept>; seen::MOST_NAMES],
    dice: Dice,
    rates: Rates,
    outage: bool,
    off: i64,
    /// When the last statement executes that is on its way.
    last_execution: Tick,
    numbers: usize,
}

/// A clone of `Held`.
struct Kept {
    holder: HolderId,
    held: Held,
    said_no: bool,
}

impl World {
    /// Call it inside a runtime with paused time.
    pub fn new(plan: Plan, dice: &mut Dice) -> Arc<Self> {
        let timer = TokioClock::new();
        let start = timer.now();
        let store = MemoryRepo::with_time(move || Moment::from_nanos(ticks(timer.now().since(start)) * 1_000));
        store.step_clock(EPOCH - store.now_us());
        if let Some(Broken::Store(mutant)) = plan.broken {
            store.break_rule(mutant);
        }
        let history = History {
            names: plan.timings.clone(),
            epoch: EPOCH,
            largest_step: plan.step.unsigned_abs(),
            ..History::default()
        };
        let state = State {
            history,
            holders: HashMap::new(),
            clones: std::array::from_fn(|_| Vec::new()),
            dice: dice.fork(),
            rates: plan.rates.clone(),
            outage: false,
            off: 0,
            last_execution: 0,
            numbers: 0,
        };
        Arc::new(Self {
            plan,
            store,
            timer,
            start,
            healed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            state: Mutex::new(state),
        })
    }

    /// True time.
    pub fn tick(&self) -> Tick {
        ticks(self.timer.now().since(self.start))
    }

    /// Resolves at a true time.
    pub fn sleep_until(&self, tick: Tick) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let since = Duration::from_millis(tick);
        self.timer.sleep_until(self.start + since)
    }

    /// Resolves so many ticks later.
    pub fn sleep(&self, ticks: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.sleep_until(self.tick() + ticks)
    }

    /// Puts something on record.
    pub fn see(&self, what: What) {
        if !self.is_over() {
            let at = self.tick();
            self.lock().history.seen.push(Seen { at, what });
        }
    }

    /// A number that nothing else has.
    pub fn number(&self) -> usize {
        let mut state = self.lock();
        state.numbers += 1;
        state.numbers
    }

    /// The number of a holder's text.
    pub fn holder(&self, text: &str) -> HolderId {
        self.lock().holder(text)
    }

    /// All rows now.
    pub fn rows(&self) -> Rows {
        let snapshot = self.store.snapshot();
        let mut state = self.lock();
        let mut rows: Rows = Default::default();
        for (row, name) in rows.iter_mut().zip(&NAMES) {
            *row = snapshot.get(name.as_str()).map(|row| state.row(row));
        }
        rows
    }

    /// What becomes of a statement that leaves now.
    pub fn course(&self, name: usize, ttl: Duration, limit: Duration) -> Course {
        let knows = self.lock().rates.knows_expiries();
        let row = knows.then(|| self.rows()[name]).flatten();
        let to_expiry = row.and_then(|row| u64::try_from(row.expires_at - self.store.now_us()).ok());
        let (now, us) = (self.tick(), |duration: Duration| {
            u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
        });
        let mut state = self.lock();
        let State {
            rates, dice, outage, ..
        } = &mut *state;
        let course = rates.course(*outage, us(ttl), us(limit), to_expiry, dice);
        let last = course.executes.iter().flatten().max().copied().unwrap_or(0);
        state.last_execution = state.last_execution.max(now + last);
        if let Some((_, says)) = FAULTS.iter().find(|(fault, _)| Some(*fault) == course.fault) {
            *state.history.faults.entry(says).or_default() += 1;
        }
        course
    }

    /// How long a row has to live for whose expiry a statement has come; nothing if that is now, which is within a microsecond, or if
    /// faults have ended.
    pub fn to_renewed_expiry(&self, name: usize) -> Option<Tick> {
        let row = self.rows()[name]?;
        let left = u64::try_from(row.expires_at - self.store.now_us()).ok()?;
        if left <= 1 || self.is_healed() {
            return None;
        }
        let at = self.tick() + left;
        let last = &mut self.lock().last_execution;
        *last = at.max(*last);
        Some(left)
    }

    /// Keeps a clone, to be asked later.
    pub fn keep(&self, name: usize, holder: HolderId, held: Held) {
        let clones = &mut self.lock().clones[name];
        if clones.len() == CLONES {
            clones.remove(0);
        }
        let said_no = false;
        clones.push(Kept { holder, held, said_no });
    }

    /// Asks every clone that was kept whether the lease is still its own.
    pub fn ask_clones(&self, name: usize) {
        if self.lock().clones[name].is_empty() {
            return;
        }
        let (row, now) = (self.rows()[name], self.store.now_us());
        let mut asked = Vec::new();
        for kept in &mut self.lock().clones[name] {
            let live = kept.held.check().is_ok();
            // It goes on saying no: once on record is enough.
            if live || !std::mem::replace(&mut kept.said_no, true) {
                asked.push(Claimed {
                    holder: kept.holder,
                    token: kept.held.token().get(),
                    live,
                    row,
                    now,
                });
            }
        }
        for claimed in asked {
            self.see(What::Claimed(Box::new(claimed)));
        }
    }

    /// Moves the store's clock to so many microseconds off the true time.
    pub fn step(&self, off: i64) {
        let by = off - std::mem::replace(&mut self.lock().off, off);
        self.store.step_clock(by);
        self.see(What::Stepped { off });
    }

    /// Lets every statement fail, or no more.
    pub fn outage(&self, on: bool) {
        self.lock().outage = on;
        self.see(What::Outage(on));
    }

    /// From now on no fault begins.
    pub fn heal(&self) {
        self.healed.store(true, Ordering::SeqCst);
        {
            let mut state = self.lock();
            state.outage = false;
            state.rates.heal();
        }
        self.see(What::Healed);
    }

    /// Whether faults have ended: then users begin nothing more.
    pub fn is_healed(&self) -> bool {
        self.healed.load(Ordering::SeqCst)
    }

    /// When the last statement executes that is on its way.
    pub fn last_execution(&self) -> Tick {
        self.lock().last_execution
    }

    /// Ends the world: nothing is seen any more, and every clock shows the end of time, so that no thread waits for it.
    pub fn end(&self) -> History {
        self.see(What::Over);
        self.over.store(true, Ordering::SeqCst);
        let mut state = self.lock();
        let clones = std::mem::take(&mut state.clones);
        let history = std::mem::take(&mut state.history);
        drop(state);
        drop(clones);
        history
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn holder(&mut self, text: &str) -> HolderId {
        let next = self.holders.len();
        *self.holders.entry(text.to_owned()).or_insert(next)
    }

    fn row(&mut self, row: &Row) -> RowSeen {
        let is_operator = row.holder.starts_with("evict/") || row.holder.starts_with("pause/");
        RowSeen {
            who: if is_operator {
                Who::Operator
            } else {
                Who::Holder(self.holder(&row.holder))
            },
            token: row.token,
            acquired_at: row.acquired_at,
            expires_at: row.expires_at,
            released_at: row.released_at,
        }
    }
}

fn ticks(time: Duration) -> Tick {
    Tick::try_from(time.as_millis() / TICK.as_millis()).unwrap_or(Tick::MAX)
}

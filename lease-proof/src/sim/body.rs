//! [`Body`]: the machine that a pod's process runs on. It has a clock, and it can stand still or be gone.
//!
//! A process wakes by its clock, by the store's answers, and by its own tasks; all three ask here first.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use lease_core::{Clock, Moment};

use super::dice::Dice;
use super::seen::Tick;
use super::world::World;

/// One process. It outlives its `Lease`s, which may be shut down and made anew.
pub struct Body {
    /// Which pod.
    pub id: usize,
    world: Arc<World>,
    /// What its clock shows when the world begins, in nanoseconds.
    offset: u64,
    /// How much faster than true time its clock runs, in parts of a billion.
    rate: i64,
    state: Mutex<State>,
}

enum State {
    Runs,
    /// Whoever was to be woken meanwhile.
    Stands(Vec<Waker>),
    Gone,
}

impl Body {
    /// A process whose clock is its own.
    pub fn new(id: usize, world: Arc<World>, dice: &mut Dice) -> Arc<Self> {
        let most = world.plan.rate;
        // Often as far off as may be, since that is where it matters.
        let rate = dice.pick(&[-most, -most, most, 0, -most / 2, most / 3]);
        Arc::new(Self {
            id,
            offset: dice.between(1 << 40..=1 << 50),
            rate,
            world,
            state: Mutex::new(State::Runs),
        })
    }

    /// Its clock, which goes on while it stands still.
    pub fn now(&self) -> Moment {
        if self.world.is_over() {
            return Moment::FAR;
        }
        self.at(self.world.tick())
    }

    fn at(&self, tick: Tick) -> Moment {
        let nanos = i128::from(tick) * 1_000;
        let shown = nanos + nanos * i128::from(self.rate) / 1_000_000_000 + i128::from(self.offset);
        Moment::from_nanos(u64::try_from(shown).unwrap_or(u64::MAX))
    }

    /// The first tick at which its clock shows `at` or more.
    fn tick_of(&self, at: Moment) -> Tick {
        let nanos = i128::from(at.as_nanos()) - i128::from(self.offset);
        let real = nanos * 1_000_000_000 / (1_000_000_000 + i128::from(self.rate)) / 1_000;
        let mut tick = Tick::try_from(real).unwrap_or(if real < 0 { 0 } else { Tick::MAX / 2 });
        while self.at(tick) < at && tick < Tick::MAX / 2 {
            tick += 1;
        }
        tick
    }

    /// Whether it runs now. If it stands still, `context` is woken when it goes on.
    pub fn may_run(&self, context: &Context<'_>) -> bool {
        match &mut *self.lock() {
            State::Runs => true,
            State::Stands(wakers) => {
                wakers.push(context.waker().clone());
                false
            }
            State::Gone => false,
        }
    }

    /// Whether it is there and runs.
    pub fn runs(&self) -> bool {
        matches!(*self.lock(), State::Runs)
    }

    /// Whether it stands still.
    pub fn stands(&self) -> bool {
        matches!(*self.lock(), State::Stands(_))
    }

    /// Lets it stand still.
    pub fn stand(&self) {
        *self.lock() = State::Stands(Vec::new());
    }

    /// Lets it go on, in any order.
    pub fn go_on(&self, dice: &mut Dice) {
        let before = std::mem::replace(&mut *self.lock(), State::Runs);
        if let State::Stands(mut wakers) = before {
            dice.shuffle(&mut wakers);
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Nothing of it ever runs again.
    pub fn crash(&self) {
        *self.lock() = State::Gone;
    }

    /// Resolves so many microseconds later by its clock, and while it runs.
    pub fn sleep(self: &Arc<Self>, micros: u64) -> PodSleep {
        PodSleep::new(self.clone(), self.now() + std::time::Duration::from_micros(micros))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sleep by a pod's clock.
pub struct PodSleep {
    body: Arc<Body>,
    at: Moment,
    timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl PodSleep {
    /// Until its clock shows `at`.
    pub const fn new(body: Arc<Body>, at: Moment) -> Self {
        Self { body, at, timer: None }
    }
}

impl Future for PodSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !self.body.may_run(context) {
            return Poll::Pending;
        }
        while self.body.now() < self.at {
            if self.timer.is_none() {
                let tick = self.body.tick_of(self.at);
                self.timer = Some(self.body.world.sleep_until(tick));
            }
            if let Some(timer) = &mut self.timer {
                ready!(timer.as_mut().poll(context));
                self.timer = None;
            }
        }
        Poll::Ready(())
    }
}

/// The pod's clock, as its `Lease`s see it.
#[derive(Clone)]
pub struct PodClock(pub Arc<Body>);

impl Clock for PodClock {
    fn now(&self) -> Moment {
        self.0.now()
    }

    fn sleep_until(&self, at: Moment) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(PodSleep::new(self.0.clone(), at))
    }
}

/// Polls a future only while its pod runs.
pub struct Gated<F> {
    body: Arc<Body>,
    future: Pin<Box<F>>,
}

impl<F> Gated<F> {
    /// `future` as a part of that process.
    pub fn new(body: Arc<Body>, future: F) -> Self {
        Self {
            body,
            future: Box::pin(future),
        }
    }
}

impl<F: Future> Future for Gated<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if self.body.may_run(context) {
            self.future.as_mut().poll(context)
        } else {
            Poll::Pending
        }
    }
}

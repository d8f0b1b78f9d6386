//! [`Work`]: the f that runs under a lease. It records each of its polls, and does what jobs do, the bad ones too.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lease_core::{Held, Stop};

use super::body::PodSleep;
use super::dice::Dice;
use super::pod::Pod;
use super::seen::{HolderId, Polled, Told, What};

/// What one f is like.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    /// How long it takes, in microseconds.
    length: u64,
    /// Whether it ends when it is told to.
    obeys: bool,
    /// How long it sleeps between polls, in microseconds; none sleeps to just before its lease is over.
    step: Option<u64>,
    panics: bool,
}

impl Habits {
    /// Those of an f under a lease of that ttl.
    pub fn draw(ttl: u64, dice: &mut Dice) -> Self {
        Self {
            length: length(ttl, dice),
            obeys: dice.chance(500),
            step: dice.chance(500).then(|| ttl / dice.between(3..=15)),
            panics: dice.chance(50),
        }
    }
}

/// How long something under a lease takes: often a moment, often several ttl.
pub fn length(ttl: u64, dice: &mut Dice) -> u64 {
    match dice.between(0..=9) {
        0 => 0,
        1..=5 => dice.spread(ttl),
        _ => dice.between(ttl / 2..=ttl * 4),
    }
}

/// An f.
pub struct Work {
    pod: Arc<Pod>,
    habits: Habits,
    held: Held,
    holder: HolderId,
    name: usize,
    call: usize,
    ends_at: lease_core::Moment,
    told: Pin<Box<dyn Future<Output = Stop> + Send>>,
    is_told: bool,
    sleep: Option<Pin<Box<PodSleep>>>,
}

impl Work {
    /// f is called.
    pub fn start(pod: Arc<Pod>, habits: Habits, name: usize, call: usize, held: Held) -> Self {
        let holder = pod.world.holder(held.holder().as_str());
        let at = pod.body.now();
        pod.world.see(What::Started { holder, call, at });
        pod.world.keep(name, holder, held.clone());
        let watched = held.clone();
        Self {
            habits,
            holder,
            name,
            call,
            ends_at: at + Duration::from_micros(habits.length),
            told: Box::pin(async move { watched.cancelled().await }),
            is_told: false,
            sleep: None,
            held,
            pod,
        }
    }

    fn record(&self) {
        let world = &self.pod.world;
        let polled = Polled {
            holder: self.holder,
            name: self.name,
            token: self.held.token().get(),
            row: world.rows()[self.name],
            now: world.store.now_us(),
            at: self.pod.body.now(),
            stop: self.held.stop().as_ref().map(Told::from),
            left: self.held.remaining(),
        };
        world.see(What::Polled(Box::new(polled)));
    }

    /// When it wants to be polled next.
    fn next(&self) -> lease_core::Moment {
        let now = self.pod.body.now();
        let ttl = self.held_ttl();
        let left = u64::try_from(self.held.remaining().as_micros()).unwrap_or(u64::MAX);
        let step = match self.habits.step {
            Some(step) => step,
            // Its last poll is as late as can be.
            None if left > 3 => left - 2,
            None if left > 0 => 1,
            None => ttl / 20,
        };
        (now + Duration::from_micros(step)).min(self.ends_at.max(now + Duration::from_micros(1)))
    }

    fn held_ttl(&self) -> u64 {
        let ttl = self.pod.world.plan.timings[self.name].ttl();
        u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX)
    }
}

impl Future for Work {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.record();
        if !self.is_told {
            self.is_told = self.told.as_mut().poll(context).is_ready();
        }
        let over = self.pod.body.now() >= self.ends_at || self.pod.world.is_healed();
        if over && self.habits.panics {
            // As a panic, but without its message on the screen.
            resume_unwind(Box::new("f panics"));
        }
        if over || (self.is_told && self.habits.obeys) {
            return Poll::Ready(());
        }
        loop {
            if self.sleep.is_none() {
                self.sleep = Some(Box::pin(PodSleep::new(self.pod.body.clone(), self.next())));
            }
            if let Some(sleep) = &mut self.sleep {
                if sleep.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.sleep = None;
            }
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let (holder, call, at) = (self.holder, self.call, self.pod.body.now());
        self.pod.world.see(What::Gone { holder, call, at });
    }
}

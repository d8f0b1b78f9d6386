//! [`User`]: whoever uses one name on one pod, in every way that there is.

use std::future::{Future, pending};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use lease_core::{Guard, Held, Job, Outcome, Wait};

use super::dice::Dice;
use super::pod::Pod;
use super::seen::{Ended, Kind, Told, What};
use super::work::{Habits, Work, length};

/// A user of one name.
pub struct User {
    pod: Arc<Pod>,
    name: usize,
    ttl: u64,
    dice: Dice,
}

impl User {
    /// A user of a pod.
    pub fn new(pod: Arc<Pod>, name: usize, dice: Dice) -> Self {
        let ttl = pod.world.plan.timings[name].ttl();
        let ttl = u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX);
        Self { pod, name, ttl, dice }
    }

    /// Takes the lease again and again, until faults have ended.
    pub async fn live(mut self) {
        while !self.pod.world.is_healed() {
            let idle = self.dice.spread(self.ttl);
            self.pod.body.sleep(idle).await;
            let (lease, job) = self.pod.job(self.name);
            if self.dice.chance(500) {
                self.run(lease, &job).await;
            } else if let Some(guard) = self.acquire(lease, &job).await {
                self.use_guard(lease, guard).await;
            }
        }
    }

    /// How long the user waits before it loses patience.
    fn patience(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if self.dice.chance(self.pod.world.plan.abandons) {
            let micros = 1 + self.dice.spread(self.ttl * 2);
            Box::pin(self.pod.body.sleep(micros))
        } else {
            Box::pin(pending())
        }
    }

    fn work(&mut self, call: usize) -> impl FnOnce(Held) -> Work + use<> {
        let (pod, name, habits) = (self.pod.clone(), self.name, Habits::draw(self.ttl, &mut self.dice));
        move |held| Work::start(pod, habits, name, call, held)
    }

    async fn run(&mut self, lease: usize, job: &Job) {
        let pod = self.pod.clone();
        let mut call = pod.call(lease, Kind::Run);
        let running = AssertUnwindSafe(job.run(self.work(call.call))).catch_unwind();
        if let Some(outcome) = unless(running, self.patience()).await {
            call.returned(outcome.map_or(Ended::Panicked, |outcome| ended(&outcome)));
        }
        drop(call);
        self.pod.world.ask_clones(self.name);
    }

    async fn acquire(&mut self, lease: usize, job: &Job) -> Option<Guard> {
        let pod = self.pod.clone();
        let wait = Duration::from_micros(self.dice.spread(self.ttl * 3));
        let (mut call, guard);
        if self.dice.chance(500) {
            call = pod.call(lease, Kind::TryAcquire);
            guard = unless(job.try_acquire(), self.patience())
                .await
                .map(|tried| tried.ok().flatten());
        } else {
            call = pod.call(lease, Kind::Acquire(wait));
            guard = unless(job.acquire(Wait::For(wait)), self.patience())
                .await
                .map(Result::ok);
        }
        let guard = guard?;
        call.returned(guard.as_ref().map_or(Ended::Skipped, |_| Ended::Granted));
        guard
    }

    async fn use_guard(&mut self, lease: usize, guard: Guard) {
        let held = guard.held().clone();
        let holder = self.pod.world.holder(held.holder().as_str());
        self.pod.world.see(What::Taken { holder });
        self.pod.world.keep(self.name, holder, held.clone());
        if self.dice.chance(400) {
            self.pod.world.see(What::Handed { holder });
            let pod = self.pod.clone();
            let mut call = pod.call(lease, Kind::GuardRun);
            let running = AssertUnwindSafe(guard.run(self.work(call.call))).catch_unwind();
            if let Some(outcome) = unless(running, self.patience()).await {
                call.returned(outcome.map_or(Ended::Panicked, |outcome| ended(&outcome)));
            }
        } else {
            let length = 1 + length(self.ttl, &mut self.dice);
            if self.dice.chance(500) {
                let _ = unless(held.cancelled(), self.pod.body.sleep(length)).await;
            } else {
                self.pod.body.sleep(length).await;
            }
            self.pod.world.ask_clones(self.name);
            self.pod.world.see(What::LetGo { holder });
            if self.dice.chance(500) {
                drop(guard);
            } else {
                let pod = self.pod.clone();
                let mut call = pod.call(lease, Kind::Release);
                if let Some(_answer) = unless(guard.release(), self.patience()).await {
                    call.returned(Ended::Released);
                }
            }
        }
        self.pod.world.ask_clones(self.name);
    }
}

/// The result of `future`, unless `patience` ends before. `future` is polled first, and dropped with this.
async fn unless<F: Future>(future: F, patience: impl Future<Output = ()>) -> Option<F::Output> {
    let mut future = Box::pin(future);
    tokio::select! {
        biased;
        output = &mut future => Some(output),
        () = patience => None,
    }
}

fn ended(outcome: &Outcome<()>) -> Ended {
    match outcome {
        Outcome::Ran(_) => Ended::Ran,
        Outcome::Dropped { stop, .. } => Ended::Dropped(Told::from(stop)),
        _ => Ended::Skipped,
    }
}

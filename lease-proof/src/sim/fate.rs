//! What befalls a world: pods stand still and crash, operators act, clocks step, the network is out. Then all heals.

use std::sync::Arc;
use std::time::Duration;

use lease_core::{Inspect, Label, Note, Wait};
use tokio::task::JoinHandle;

use super::body::Gated;
use super::dice::Dice;
use super::pod::Pod;
use super::seen::{Ended, History, Kind, What};
use super::world::{NAMES, World};

/// The most pods that crash in one world.
const MOST_CRASHES: usize = 4;

/// A pod, and the tasks of its users.
struct Living {
    pod: Arc<Pod>,
    tasks: Vec<JoinHandle<()>>,
}

/// A world from its beginning to its end.
pub struct Fate {
    world: Arc<World>,
    dice: Dice,
    pods: Vec<Living>,
    born: usize,
    crashed: usize,
}

impl Fate {
    /// The fate of a world that has not begun.
    pub fn new(world: Arc<World>, dice: Dice) -> Self {
        Self {
            world,
            dice,
            pods: Vec::new(),
            born: 0,
            crashed: 0,
        }
    }

    /// Lets the world go its way.
    pub async fn run(mut self) -> History {
        for _ in 0..self.world.plan.pods {
            self.start_pod();
        }
        let ttl = self.world.plan.longest_ttl();
        while self.world.tick() < self.world.plan.heals_at {
            let pause = 1 + self.dice.spread(ttl);
            self.world.sleep(pause).await;
            self.act(ttl).await;
        }
        self.heal().await;
        self.settle(ttl).await;
        self.probe(ttl).await;
        // What the last ones left must be free as well.
        self.settle(ttl).await;
        self.world.end()
    }

    fn start_pod(&mut self) {
        let (pod, tasks) = Pod::start(self.born, &self.world, &mut self.dice);
        self.born += 1;
        self.pods.push(Living { pod, tasks });
    }

    async fn act(&mut self, ttl: u64) {
        let [outage, stand, crash, operator, step] = self.world.plan.fate;
        let length = 1 + self.dice.spread(ttl * 2);
        if self.dice.chance(outage) {
            let world = self.world.clone();
            self.world.outage(true);
            drop(tokio::spawn(async move {
                world.sleep(length).await;
                world.outage(false);
            }));
        }
        if self.dice.chance(stand) {
            self.stand(length);
        }
        if self.dice.chance(crash) && self.crashed < MOST_CRASHES {
            self.crashed += 1;
            let at = self.dice.between(0..=self.pods.len() as u64 - 1);
            let gone = self.pods.swap_remove(usize::try_from(at).unwrap_or(0));
            gone.pod.body.crash();
            self.world.see(What::Crashed { pod: gone.pod.body.id });
            self.start_pod();
        }
        if self.dice.chance(operator) {
            self.operate(length).await;
        }
        if self.dice.chance(step) && self.world.plan.step > 0 {
            let most = self.world.plan.step.unsigned_abs();
            let off = self.dice.between(0..=most);
            let off = self.dice.pick(&[0, most, off]);
            self.world.step(i64::try_from(off).unwrap_or(0));
        }
        for name in 0..self.world.plan.jobs.len() {
            self.world.ask_clones(name);
        }
    }

    /// A pod stands still for a while.
    fn stand(&mut self, length: u64) {
        let at = self.dice.between(0..=self.pods.len() as u64 - 1);
        let body = self.pods[usize::try_from(at).unwrap_or(0)].pod.body.clone();
        if !body.runs() {
            return;
        }
        body.stand();
        self.world.see(What::Stands { pod: body.id });
        let (world, mut dice) = (self.world.clone(), self.dice.fork());
        drop(tokio::spawn(async move {
            world.sleep(length).await;
            if body.stands() {
                world.see(What::GoesOn { pod: body.id });
                body.go_on(&mut dice);
            }
        }));
    }

    async fn operate(&mut self, length: u64) {
        let names = self.world.plan.jobs.len() as u64;
        let name = usize::try_from(self.dice.between(0..=names - 1)).unwrap_or(0);
        let what = self.dice.pick(&["evict", "pause", "resume"]);
        self.operator(what, name, length).await;
    }

    async fn operator(&self, what: &'static str, name: usize, length: u64) {
        let (by, reason) = (Label::new("admin"), Note::new("by chance"));
        let (Ok(by), Ok(reason)) = (by, reason) else {
            unreachable!("both are legal")
        };
        let (store, lease, before) = (&self.world.store, &NAMES[name], self.world.rows());
        let done = match what {
            "evict" => store.evict(lease, &by, &reason).await.map(drop),
            "pause" => store.pause(lease, Duration::from_micros(length), &by, &reason).await,
            _ => store.resume(lease).await.map(drop),
        };
        done.unwrap_or_else(|error| panic!("the store itself never fails: {error}"));
        let after = self.world.rows();
        self.world.see(What::Operator { what, before, after });
    }

    /// Ends all faults, and waits until every user has come to its end.
    async fn heal(&mut self) {
        self.world.heal();
        for name in 0..self.world.plan.jobs.len() {
            self.operator("resume", name, 0).await;
        }
        for living in &self.pods {
            let body = &living.pod.body;
            if body.stands() {
                self.world.see(What::GoesOn { pod: body.id });
                body.go_on(&mut self.dice);
            }
        }
        let patience = self.world.plan.longest_ttl() * 8 + 30_000_000;
        for living in &mut self.pods {
            for task in living.tasks.drain(..) {
                let abort = task.abort_handle();
                tokio::select! {
                    biased;
                    ended = task => ended.unwrap_or_else(|error| panic!("a user of a pod panicked: {error}")),
                    // A call does not return: the invariants find it open.
                    () = self.world.sleep(patience) => abort.abort(),
                }
            }
        }
    }

    /// Waits until late statements have executed and undos have come to their end.
    async fn settle(&self, ttl: u64) {
        let rest = self.world.tick().max(self.world.last_execution()) + ttl * 3 + 8_000_000;
        self.world.sleep_until(rest).await;
        let (rows, now) = (self.world.rows(), self.world.store.now_us());
        self.world.see(What::Settled { rows, now });
    }

    /// Each pod takes each lease once more.
    async fn probe(&mut self, ttl: u64) {
        for living in &self.pods {
            for name in 0..self.world.plan.jobs.len() {
                let minimum = self.world.plan.timings[name].at_least_for();
                let wait = Duration::from_micros(ttl) + minimum + Duration::from_secs(2);
                let probe = probe(living.pod.clone(), name, wait);
                Gated::new(living.pod.body.clone(), probe).await;
            }
        }
    }
}

async fn probe(pod: Arc<Pod>, name: usize, wait: Duration) {
    let (lease, job) = pod.job(name);
    let mut call = pod.call(lease, Kind::Probe(wait));
    let guard = job.acquire(Wait::For(wait)).await.ok();
    call.returned(guard.as_ref().map_or(Ended::Skipped, |_| Ended::Granted));
    drop(call);
    if let Some(guard) = guard {
        let holder = pod.world.holder(guard.held().holder().as_str());
        pod.world.see(What::Taken { holder });
        pod.world.keep(name, holder, guard.held().clone());
        pod.world.see(What::LetGo { holder });
        let mut call = pod.call(lease, Kind::Release);
        drop(guard.release().await);
        call.returned(Ended::Released);
    }
}

//! [`Pod`]: a process with its `Lease`, its users, and its boss who restarts it.

use std::sync::{Arc, Mutex, PoisonError};

use lease_core::{Job, Label, Lease, Moment};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::body::{Body, Gated, PodClock};
use super::dice::Dice;
use super::seen::{Ended, Kind, What};
use super::user::User;
use super::wire::Wire;
use super::world::{NAMES, World};

/// A process with a `Lease`.
pub struct Pod {
    /// The world it is in.
    pub world: Arc<World>,
    /// What it runs on.
    pub body: Arc<Body>,
    lease: Mutex<(usize, Lease)>,
}

impl Pod {
    /// Starts a pod. It ends when faults have ended, or when it crashes.
    pub fn start(id: usize, world: &Arc<World>, dice: &mut Dice) -> (Arc<Self>, Vec<JoinHandle<()>>) {
        let body = Body::new(id, world.clone(), dice);
        let pod = Arc::new(Self {
            lease: Mutex::new(new_lease(world, &body)),
            world: world.clone(),
            body,
        });
        let mut tasks = Vec::new();
        for name in 0..world.plan.jobs.len() {
            // Two users of one name exclude each other before the store is asked.
            for _ in 0..if dice.chance(200) { 2 } else { 1 } {
                let user = User::new(pod.clone(), name, dice.fork());
                tasks.push(tokio::spawn(Gated::new(pod.body.clone(), user.live())));
            }
        }
        let boss = boss(pod.clone(), dice.fork());
        tasks.push(tokio::spawn(Gated::new(pod.body.clone(), boss)));
        (pod, tasks)
    }

    /// Its `Lease`, with its number.
    pub fn lease(&self) -> (usize, Lease) {
        let lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        lease.clone()
    }

    /// The job of a name, and the number of the `Lease` it is of.
    pub fn job(&self, name: usize) -> (usize, Job) {
        let (number, lease) = self.lease();
        let job = lease.job(NAMES[name].as_str(), self.world.plan.jobs[name].clone());
        (
            number,
            job.unwrap_or_else(|invalid| panic!("a plan's job is legal: {invalid}")),
        )
    }

    /// Puts a call on record.
    pub fn call(&self, lease: usize, kind: Kind) -> Call<'_> {
        let call = self.world.number();
        let at = self.body.now();
        self.world.see(What::Called { call, lease, kind, at });
        Call {
            pod: self,
            call,
            how: None,
        }
    }
}

/// Shuts the `Lease` down now and then, and makes a new one, as a deployment does.
async fn boss(pod: Arc<Pod>, mut dice: Dice) {
    let ttl = pod.world.plan.longest_ttl();
    while !pod.world.is_healed() {
        pod.body.sleep(dice.between(1..=ttl * 4)).await;
        if !dice.chance(pod.world.plan.restarts) {
            continue;
        }
        let grace = std::time::Duration::from_micros(dice.spread(ttl));
        let (number, lease) = pod.lease();
        let mut call = pod.call(number, Kind::ShutDown(grace));
        let forsaken = lease.shutdown(grace).await.len();
        call.returned(Ended::ShutDown { forsaken });
        *pod.lease.lock().unwrap_or_else(PoisonError::into_inner) = new_lease(&pod.world, &pod.body);
    }
}

fn new_lease(world: &Arc<World>, body: &Arc<Body>) -> (usize, Lease) {
    let lease = world.number();
    world.see(What::Born { lease, pod: body.id });
    let wire = Wire {
        world: world.clone(),
        body: body.clone(),
        lease,
    };
    let label = Label::new(format!("pod-{}", body.id)).unwrap_or_else(|invalid| panic!("{invalid}"));
    let builder = Lease::builder(wire).label(label).clock(PodClock(body.clone()));
    (lease, builder.keeper_on(Handle::current()).build())
}

/// A call under way.
pub struct Call<'a> {
    pod: &'a Pod,
    /// Which.
    pub call: usize,
    how: Option<(Ended, Moment)>,
}

impl Call<'_> {
    /// It has returned.
    pub fn returned(&mut self, how: Ended) {
        self.how = Some((how, self.pod.body.now()));
    }
}

impl Drop for Call<'_> {
    /// Without a result, its future was dropped.
    fn drop(&mut self) {
        let call = self.call;
        self.pod.world.see(match self.how {
            Some((how, at)) => What::Returned { call, how, at },
            None => What::Abandoned { call },
        });
    }
}

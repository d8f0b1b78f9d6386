//! What is broken, whether the guarantees assume that it does not happen, and when: all of it from one seed.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use crate::engine::{Engine, PODS};

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// A pod is killed, and another process of it started.
    PodKilled,
    /// A pod is frozen, and thawed.
    PodFrozen,
    /// No packet from or to a pod.
    PodCutOff,
    /// What a pod sends is dropped; answers still reach it.
    PodUnheard,
    /// What is sent to a pod is dropped: its statements are executed.
    PodDeaf,
    /// Bytes between a pod and its servers are late.
    PodDelayed,
    /// Replies to a pod are lost, with their connections.
    RepliesLost,
    /// Bytes between all pods and servers are late.
    AllDelayed,
    /// A server is restarted in order.
    ServerRestarted,
    /// A server is killed and started.
    ServerKilled,
    /// A server is frozen, and thawed with what it was doing.
    ServerFrozen,
    /// No packet from or to a server.
    ServerCutOff,
    /// What a server sends is dropped.
    ServerUnheard,
    /// What is sent to a server is dropped.
    ServerDeaf,
    /// A server's clock steps by less than the drift.
    ClockStepsWithin,
    /// A server's clock steps by far more than the drift.
    ClockStepsBeyond,
    /// All sessions of the service are ended, and others take its places.
    ConnectionsTaken,
    /// The server's disk is full.
    DiskFull,
    /// The server refuses writes.
    ReadOnly,
    /// The primary dies, and its synchronous standby is promoted.
    Failover,
    /// The primary dies, and a standby is promoted that had been cut off from it.
    FailoverLosingCommits,
    /// The standby is cut off from the primary, whose commits wait for it.
    StandbyCutOff,
    /// A node is cut off from the other nodes, not from the pods.
    NodeIsolated,
}

/// Whether the guarantees hold under a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scope {
    /// They do.
    Within,
    /// They assume that it does not happen, for this pod or for all.
    Outside,
}

impl Kind {
    pub(crate) const fn scope(self) -> Scope {
        match self {
            Self::PodFrozen | Self::ClockStepsBeyond | Self::FailoverLosingCommits => Scope::Outside,
            _ => Scope::Within,
        }
    }

    /// Whether it is of one pod.
    pub(crate) const fn is_of_a_pod(self) -> bool {
        matches!(
            self,
            Self::PodKilled
                | Self::PodFrozen
                | Self::PodCutOff
                | Self::PodUnheard
                | Self::PodDeaf
                | Self::PodDelayed
                | Self::RepliesLost
        )
    }

    /// Whether it may be there beside a fault of a pod: what changes places or the disk is alone.
    const fn may_have_company(self) -> bool {
        !matches!(self, Self::Failover | Self::FailoverLosingCommits | Self::DiskFull)
    }

    /// Those that can happen to these servers.
    pub(crate) fn all(engine: Engine) -> Vec<Self> {
        let kinds = Self::value_variants().iter().copied();
        kinds.filter(|kind| kind.happens_to(engine)).collect()
    }

    const fn happens_to(self, engine: Engine) -> bool {
        match self {
            Self::Failover | Self::FailoverLosingCommits | Self::StandbyCutOff => {
                matches!(engine, Engine::PostgresStandby)
            }
            Self::NodeIsolated => matches!(engine, Engine::Galera),
            // A node whose disk is full leaves its cluster, and comes back with a copy of everything: that is a node killed.
            Self::DiskFull => !matches!(engine, Engine::Galera | Engine::PostgresStandby),
            Self::ClockStepsWithin | Self::ClockStepsBeyond => engine.has_clocks(),
            _ => true,
        }
    }
}

/// A fault that is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// Which pod, or which server of a cluster; counted from 0.
    pub(crate) target: usize,
    #[serde(skip)]
    pub(crate) lasts: Duration,
    /// From -1 to 1: of whatever can be more or less, either way.
    #[serde(skip)]
    pub(crate) strength: f64,
}

/// The faults of a world, one after the other: each kind once before any comes again.
#[derive(Debug)]
pub(crate) struct Schedule {
    dice: fastrand::Rng,
    engine: Engine,
    kinds: Vec<Kind>,
    bag: Vec<Kind>,
}

impl Schedule {
    /// All of it comes from the seed. `only` these kinds, if there are any.
    pub(crate) fn new(engine: Engine, seed: u64, only: &[Kind]) -> Self {
        let mut kinds = Kind::all(engine);
        kinds.retain(|kind| only.is_empty() || only.contains(kind));
        Self {
            dice: fastrand::Rng::with_seed(seed),
            engine,
            kinds,
            bag: Vec::new(),
        }
    }

    /// What happens next, at once: one fault, or one of a pod beside another.
    pub(crate) fn next(&mut self) -> Vec<Plan> {
        let first = self.draw();
        let mut plans = vec![self.plan(first)];
        let company: Vec<Kind> = self
            .kinds
            .iter()
            .copied()
            .filter(|kind| kind.is_of_a_pod() && *kind != first)
            .collect();
        if first.may_have_company() && !company.is_empty() && self.dice.u8(0..100) < 20 {
            let kind = company[self.dice.usize(0..company.len())];
            let second = self.plan(kind);
            if !first.is_of_a_pod() || second.target != plans[0].target {
                plans.push(second);
            }
        }
        plans
    }

    fn draw(&mut self) -> Kind {
        if self.bag.is_empty() {
            self.bag = self.kinds.clone();
            self.dice.shuffle(&mut self.bag);
        }
        self.bag.pop().expect("a world has faults")
    }

    fn plan(&mut self, kind: Kind) -> Plan {
        let count = if kind.is_of_a_pod() {
            PODS
        } else {
            self.engine.servers()
        };
        let target = self.dice.usize(0..count);
        // From a hiccup to well beyond a ttl; and a standby that has lost more than a few renewals has lost no more.
        let longest = if kind == Kind::FailoverLosingCommits {
            1_500
        } else {
            4_500
        };
        Plan {
            kind,
            target,
            lasts: Duration::from_millis(self.dice.u64(300..longest)),
            strength: self.dice.f64() * 2.0 - 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_schedule_and_each_kind_comes_before_any_comes_again() {
        for engine in Engine::value_variants() {
            let draw = |seed| {
                let mut schedule = Schedule::new(*engine, seed, &[]);
                (0..60).map(|_| schedule.next()).collect::<Vec<_>>()
            };
            assert_eq!(draw(7), draw(7));
            assert_ne!(draw(7), draw(8));
            let kinds = Kind::all(*engine);
            let mut first: Vec<Kind> = draw(7)[..kinds.len()].iter().map(|plans| plans[0].kind).collect();
            first.sort();
            let mut all = kinds;
            all.sort();
            assert_eq!(first, all, "{engine:?}");
        }
    }

    #[test]
    fn two_at_once_are_never_of_the_same_pod() {
        let mut schedule = Schedule::new(Engine::Postgres, 1, &[]);
        let mut pairs = 0;
        for _ in 0..500 {
            let plans = schedule.next();
            if let [one, other] = plans[..] {
                pairs += 1;
                assert!(other.kind.is_of_a_pod() && (!one.kind.is_of_a_pod() || one.target != other.target));
            }
        }
        assert!(pairs > 30, "{pairs}");
    }
}

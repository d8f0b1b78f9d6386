//! [`Bounds`]: how far a run explores, and which kinds of trouble it lets happen.

use std::time::Duration;

use lease_core::{Options, Timing};

/// The step of time. Everything happens at a multiple of it.
pub const UNIT: Duration = Duration::from_millis(100);

/// The times of a tenure, in [`UNIT`]s.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// See [`Timing::ttl`].
    pub ttl: u32,
    /// See [`Timing::drift`].
    pub drift: u32,
    /// See [`Timing::margin`].
    pub margin: u32,
    /// See [`Timing::renew_every`].
    pub renew_every: u32,
    /// See [`Timing::at_least_for`].
    pub at_least_for: u32,
    /// See [`Timing::time_limit`].
    pub time_limit: Option<u32>,
}

impl Times {
    /// The shortest times that leave each phase of a tenure a unit of its own.
    pub const SHORT: Self = Self {
        ttl: 6,
        drift: 1,
        margin: 2,
        renew_every: 2,
        at_least_for: 0,
        time_limit: None,
    };

    /// As users give them.
    pub fn options(self) -> Options {
        let options = Options::from(UNIT * self.ttl)
            .drift(UNIT * self.drift)
            .margin(UNIT * self.margin)
            .renew_every(UNIT * self.renew_every)
            .at_least_for(UNIT * self.at_least_for);
        match self.time_limit {
            Some(limit) => options.time_limit(UNIT * limit),
            None => options,
        }
    }

    /// Whether the real rules accept them.
    ///
    /// # Errors
    /// The relation that does not hold.
    pub fn check(self) -> anyhow::Result<Timing> {
        Ok(Timing::new(&self.options())?)
    }
}

/// How often each kind of trouble may happen in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Budget {
    /// Faults of the network, each of one statement.
    pub faults: u8,
    /// Units by which a clock goes wrong: a pod's stands still, or the database's steps. Never two within a ttl of
    /// each other, so that together they stay within `drift`.
    pub clocks: u8,
    /// Pods that die; they begin again with nothing.
    pub crashes: u8,
    /// Evictions.
    pub evictions: u8,
    /// Pauses; each may be resumed.
    pub pauses: u8,
    /// Askers that are gone before they have their grant.
    pub abandons: u8,
    /// Pods that shut down.
    pub shutdowns: u8,
    /// How many f return before they are told to stop. Once told, each may return or not.
    pub returns: u8,
}

/// Which faults the network has, beside delays, which it always has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Statements fail: refused, lost, given up and executed later, or the answer is lost.
    Fails,
    /// It also executes statements again later, as if a copy had been on the way.
    Repeats,
}

/// How late things may be that are not faults.
#[derive(Debug, Clone, Copy)]
pub struct Slack {
    /// How many units a pod waits for an answer at the most, and an answer for its pod. What nobody waits for may be
    /// on its way without end.
    pub answers: u32,
    /// How many units after its time a keeper looks at its tenure at the latest.
    pub ticks: u32,
    /// Whether f may start later than at its grant.
    pub starts: bool,
}

impl Slack {
    /// No bound at all: pods that are paused, statements that hang.
    pub const ANY: Self = Self {
        answers: u32::MAX,
        ticks: u32::MAX,
        starts: true,
    };
}

/// One exploration: everything that can happen within these bounds is tried.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// How many pods compete.
    pub pods: u8,
    /// How many tenures each pod may ask for.
    pub asks: u8,
    /// When it ends, in units.
    pub horizon: u32,
    /// The times of each tenure.
    pub times: Times,
    /// Which faults the network has.
    pub network: Network,
    /// How late everything may be.
    pub slack: Slack,
    /// How much trouble there is.
    pub budget: Budget,
}

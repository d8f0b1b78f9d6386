//! [`Plan`]: what kind of world a seed makes.

use std::time::Duration;

use lease_core::{OnLost, Options, Timing};

use super::Broken;
use super::dice::Dice;
use super::faults::Rates;
use super::seen::{MOST_NAMES, Tick};

/// A world before it begins.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is broken on purpose.
    pub broken: Option<Broken>,
    /// How each name is held. The same on all pods, as in one deployment.
    pub jobs: Vec<Options>,
    /// The same, checked.
    pub timings: Vec<Timing>,
    /// How many pods.
    pub pods: usize,
    /// The most a pod's clock is fast or slow, in parts of a billion.
    pub rate: i64,
    /// How far the store's clock may be off, in microseconds.
    pub step: i64,
    /// How many leases the store renews in one statement.
    pub batch: usize,
    /// Until when things go wrong.
    pub heals_at: Tick,
    /// What goes wrong with statements.
    pub rates: Rates,
    /// How often an outage begins, a pod stands still, a pod crashes, an operator acts, the clock steps; in thousand
    /// acts of fate.
    pub fate: [u64; 5],
    /// How often the user of a pod gives up waiting, and how often a pod is restarted, in thousand.
    pub abandons: u64,
    /// How often a pod shuts down in order, in thousand times its boss looks.
    pub restarts: u64,
}

impl Plan {
    /// The plan of a seed.
    #[must_use]
    pub fn draw(broken: Option<Broken>, dice: &mut Dice) -> Self {
        let base = 100_000 + dice.spread(20_000_000);
        let names = dice.between(1..=MOST_NAMES as u64);
        let jobs: Vec<Options> = (0..names).map(|_| draw_options(base, dice)).collect();
        let timings: Vec<Timing> = jobs.iter().map(checked).collect();
        let jobs = jobs
            .into_iter()
            .map(|options| broken_options(options, broken))
            .collect();
        // Clocks and steps share the drift: never all of it, often nearly.
        let for_rate = dice.pick(&[0, 300, 600, 900, 960]);
        let drift = timings.iter().map(|timing| timing.drift().as_micros()).min();
        let drift = i64::try_from(drift.unwrap_or_default()).unwrap_or(0);
        let per_billion = |timing: &Timing| timing.drift().as_nanos() * 1_000_000 / timing.ttl().as_nanos() * for_rate;
        let rate = timings.iter().map(per_billion).min().unwrap_or_default();
        let step = drift * (980 - i64::try_from(for_rate).unwrap_or(0)) / 1_000;
        let awful = dice.pick(&[0, 0, 30, 100, 250, 500]);
        let fate = std::array::from_fn(|_| if dice.chance(700) { dice.between(0..=150) } else { 0 });
        Self {
            broken,
            pods: usize::try_from(dice.between(2..=5)).unwrap_or(2),
            rate: i64::try_from(rate).unwrap_or(0),
            step: if dice.chance(500) { step } else { 0 },
            heals_at: base * dice.between(20..=80),
            rates: Rates::draw(awful, dice),
            fate,
            batch: dice.pick(&[1, 1, 2, MOST_NAMES]),
            abandons: dice.pick(&[0, 50, 200, 500]),
            restarts: dice.pick(&[0, 0, 100, 400]),
            jobs,
            timings,
        }
    }

    /// The longest ttl of any name, in microseconds.
    #[must_use]
    pub fn longest_ttl(&self) -> u64 {
        let longest = self.timings.iter().map(|timing| timing.ttl().as_micros()).max();
        u64::try_from(longest.unwrap_or_default()).unwrap_or(u64::MAX)
    }
}

fn draw_options(base: u64, dice: &mut Dice) -> Options {
    let us = Duration::from_micros;
    let ttl = (base * dice.between(50..=200) / 100).max(100_000);
    let mut options = Options::from(us(ttl));
    let mut drift = (ttl / 100).max(2_000);
    if dice.chance(400) {
        drift = dice.between((ttl / 500).max(1_000)..=(ttl / 20).max(1_000));
        options = options.drift(us(drift));
    }
    let mut margin = (ttl / 6).max(drift * 2);
    if dice.chance(400) {
        margin = dice.between(drift * 2..=(ttl / 2).max(drift * 2));
        options = options.margin(us(margin));
    }
    if dice.chance(400) {
        options = options.renew_every(us(dice.between(ttl / 40..=(ttl - margin) / 2)));
    }
    if dice.chance(500) {
        options = options.at_least_for(us(dice.spread(ttl * 2)));
    }
    if dice.chance(300) {
        options = options.time_limit(us(margin + 1_000 + dice.spread(ttl * 2)));
    }
    if dice.chance(200) {
        options = options.on_lost(OnLost::SignalOnly);
    }
    options
}

fn broken_options(options: Options, broken: Option<Broken>) -> Options {
    match broken {
        Some(Broken::Tenure(mutant)) => options.break_rule(mutant),
        _ => options,
    }
}

fn checked(options: &Options) -> Timing {
    Timing::new(options).unwrap_or_else(|invalid| panic!("a plan draws legal options only: {invalid}"))
}

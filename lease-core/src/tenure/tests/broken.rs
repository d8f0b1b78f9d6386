//! Each rule that can be broken on purpose makes a difference, so that a proof that notices none of it proves nothing.

use std::iter::repeat_with;

use fastrand::Rng;

use super::*;
use crate::tenure::TenureMutant;

/// Those that are not the machine's: of the gate, of the choice of a holder, of the keeper.
const OUTSIDE: [TenureMutant; 3] = [
    TenureMutant::HasNoGate,
    TenureMutant::ReusesTheHolder,
    TenureMutant::WaitsForEachAnswer,
];

fn options() -> Options {
    Options::from(ms(12_000)).at_least_for(ms(9_000)).time_limit(ms(20_000))
}

/// What a tenure shows of itself in a schedule of random events.
fn trace(options: &Options, seed: u64) -> Vec<(Vec<Effect>, Phase, Moment, Option<Moment>)> {
    let mut random = Rng::with_seed(seed);
    let mut tenure = Tenure::ask(Timing::new(options).unwrap(), T0);
    let mut now = 0;
    repeat_with(|| {
        now += random.u64(0..4_000);
        let event = match random.u8(0..24) {
            0..5 => Event::Granted(token()),
            5 => Event::AcquireFailed {
                may_have_executed: true,
            },
            6 => Event::RenewFailed(Spread::NONE),
            7 => Event::Lost { evicted: random.bool() },
            8 => Event::NotHeld,
            9 => Event::ReleaseFailed,
            10 => Event::Started,
            11 => Event::Finished { ran: random.bool() },
            12 => Event::Abandoned,
            13 => [Event::ShutDown, Event::GraceOver, Event::Forsaken][random.usize(0..3)],
            14..18 => Event::Renewed,
            _ => Event::Tick,
        };
        let effects = step(&mut tenure, now, event);
        (effects, tenure.phase(), tenure.drop_at(), tenure.next_at())
    })
    .take(40)
    .collect()
}

#[test]
fn each_broken_rule_of_the_machine_makes_a_difference() {
    for mutant in TenureMutant::ALL.iter().filter(|mutant| !OUTSIDE.contains(mutant)) {
        let broken = options().break_rule(*mutant);
        let differs = (0..20_000).any(|seed| trace(&options(), seed) != trace(&broken, seed));
        assert!(differs, "{mutant:?} changes nothing");
    }
}

#[test]
fn a_rule_of_the_gate_the_holder_or_the_keeper_leaves_the_machine_alone() {
    for mutant in OUTSIDE {
        let broken = options().break_rule(mutant);
        assert!(
            (0..200).all(|seed| trace(&options(), seed) == trace(&broken, seed)),
            "{mutant:?}"
        );
    }
}

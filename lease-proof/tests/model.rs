//! The model, run to the end of its small bounds, and each mutant that it must notice.

use std::collections::BTreeSet;

use lease_core::tenure::TenureMutant;
use lease_proof::model::Sight::{
    BusyAfterRelease, Confirmed, Evicted, Forsaken, GivenBack, OverdueThenDropped, PolledWhileEvicted,
    RenewedAfterAnError, RenewedTooLate, Retry, Takeover, TimedOut, Undone,
};
use lease_proof::model::{
    Break, DEEP, Judged, NOTICED, OUT_OF_REACH, SMALL, Sight, Times, UNIT, World, explore, judge,
};
use stateright::Model;

/// Tries everything in a small run: nothing is broken, the number of states is this one, and this was seen on the way.
#[track_caller]
fn holds(run: &str, unique: usize, seen: &[Sight]) {
    let bounds = SMALL.iter().find(|bounds| bounds.name == run).expect("a small run");
    let explored = explore(*bounds, 1).unwrap();
    let broken = &explored.counterexamples;
    assert!(broken.is_empty(), "{broken:#?}");
    let sights = Sight::ALL.iter().filter(|sight| explored.sightings.of(**sight) > 0);
    assert_eq!(
        (explored.unique, sights.copied().collect::<Vec<_>>()),
        (unique, seen.to_vec()),
        "(states, sights)"
    );
}

#[test]
fn late_answers_and_ticks_break_nothing() {
    holds(
        "late",
        46_719,
        &[Takeover, OverdueThenDropped, RenewedTooLate, Confirmed, GivenBack],
    );
}

#[test]
fn a_fault_among_two_pods_breaks_nothing() {
    holds(
        "faults",
        144_448,
        &[
            Takeover,
            RenewedAfterAnError,
            OverdueThenDropped,
            RenewedTooLate,
            Undone,
        ],
    );
}

#[test]
fn two_faults_of_one_pod_break_nothing() {
    holds(
        "undo",
        68_142,
        &[RenewedAfterAnError, OverdueThenDropped, RenewedTooLate, Undone],
    );
}

#[test]
fn clocks_that_go_apart_by_the_drift_break_nothing() {
    holds(
        "clocks",
        202_802,
        &[Takeover, OverdueThenDropped, RenewedTooLate, BusyAfterRelease],
    );
}

#[test]
fn a_statement_that_executes_twice_breaks_nothing() {
    holds(
        "repeats",
        21_063,
        &[
            Retry,
            RenewedAfterAnError,
            OverdueThenDropped,
            RenewedTooLate,
            Undone,
            BusyAfterRelease,
        ],
    );
}

#[test]
fn an_eviction_breaks_nothing() {
    holds(
        "evicted",
        38_663,
        &[Takeover, OverdueThenDropped, Evicted, PolledWhileEvicted],
    );
}

#[test]
fn a_pause_breaks_nothing() {
    holds(
        "paused",
        77_539,
        &[
            Takeover,
            OverdueThenDropped,
            Evicted,
            PolledWhileEvicted,
            BusyAfterRelease,
        ],
    );
}

#[test]
fn no_way_to_end_breaks_anything() {
    holds(
        "endings",
        49_152,
        &[OverdueThenDropped, RenewedTooLate, TimedOut, Forsaken],
    );
}

#[test]
fn a_pod_that_dies_and_asks_again_breaks_nothing() {
    holds(
        "tenures",
        113_880,
        &[RenewedAfterAnError, OverdueThenDropped, RenewedTooLate, Undone],
    );
}

/// Some of the mutants, so that the tests use every core: from this place on each fourth.
fn every_mutant_is_noticed(from: usize) {
    let judged = NOTICED
        .iter()
        .skip(from)
        .step_by(4)
        .map(|noticed| judge(*noticed).unwrap());
    let missed: Vec<Judged> = judged.filter(|judged| !judged.as_expected()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn mutants_are_noticed_by_their_rules_1() {
    every_mutant_is_noticed(0);
}

#[test]
fn mutants_are_noticed_by_their_rules_2() {
    every_mutant_is_noticed(1);
}

#[test]
fn mutants_are_noticed_by_their_rules_3() {
    every_mutant_is_noticed(2);
}

#[test]
fn mutants_are_noticed_by_their_rules_4() {
    every_mutant_is_noticed(3);
}

#[test]
fn each_mutant_of_a_tenure_is_noticed_or_out_of_reach() {
    for mutant in TenureMutant::ALL {
        let mutant = Break::Tenure(*mutant);
        let noticed = NOTICED.iter().any(|noticed| noticed.broken == mutant);
        let out_of_reach = OUT_OF_REACH.iter().any(|(broken, _)| *broken == mutant);
        assert!(noticed != out_of_reach, "{mutant:?}");
    }
}

#[test]
fn each_rule_has_a_mutant_that_breaks_it() {
    let world = World::new(SMALL[0], None).unwrap();
    let rules: BTreeSet<&str> = world.properties().iter().map(|property| property.name).collect();
    let broken: BTreeSet<&str> = NOTICED.iter().map(|noticed| noticed.rule).collect();
    assert_eq!(rules, broken);
}

#[test]
fn each_run_has_a_name_of_its_own_and_times_that_fit() {
    for runs in [SMALL, DEEP] {
        let names: BTreeSet<&str> = runs.iter().map(|bounds| bounds.name).collect();
        assert_eq!(names.len(), runs.len());
        for bounds in runs {
            assert_eq!(bounds.times.check().unwrap().ttl(), UNIT * bounds.times.ttl);
            assert!(bounds.horizon > bounds.times.drift, "{}", bounds.name);
        }
    }
    assert!(
        Times {
            drift: 4,
            ..Times::SHORT
        }
        .check()
        .is_err()
    );
}

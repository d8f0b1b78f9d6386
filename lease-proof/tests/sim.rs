//! The simulation: unbroken code violates nothing, a seed is a world, and each mutant is caught.

use std::process::Command;

use lease_core::tenure::TenureMutant;
use lease_proof::sim::{Batch, Broken, CAUGHT, again, hunt, invariant, play};

/// Where the worlds of the tests begin.
const FROM: u64 = 1;
/// Where the worlds of a mutant begin that is seldom caught: near one that catches it, so that the test is quick. From
/// the first seed on it takes a few thousand tenures.
const NEAR: &[(&str, u64)] = &[
    ("ForgetsTheDrift", 14),
    ("HasNoGate", 10),
    ("RevivesAfterTheDrop", 36),
    ("RetryAfterExpiry", 15),
    ("RenewAfterRelease", 16),
];
/// How many tenures a mutant has until each invariant that is about it must have caught it.
const HUNT: u64 = 10_000;

#[test]
fn two_thousand_tenures_violate_nothing() {
    let batch = Batch::play(FROM, 2_000, 2, None, |_| false);
    assert!(batch.tally.tenures >= 2_000);
    let found: Vec<String> = batch
        .found
        .iter()
        .map(|found| format!("{}: {:?}", again(found.seed, None), found.violations))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
    // A world in which nothing goes wrong proves nothing.
    for what in [
        "undos",
        "takeovers",
        "losses",
        "pods that crashed",
        "pods that stood still",
        "retries granted",
    ] {
        assert!(batch.tally.counts.contains_key(what), "no {what}: {batch:#?}");
    }
    assert!(batch.tally.faults.len() > 8, "{batch:#?}");
}

#[test]
fn a_seed_makes_the_same_world_again() {
    for seed in [2, 3, 7] {
        let (first, second) = (play(seed, None), play(seed, None));
        let differs = first
            .seen
            .iter()
            .zip(&second.seen)
            .find(|(one, other)| one.to_string() != other.to_string());
        assert!(differs.is_none(), "seed {seed}: {differs:?}");
        assert_eq!(first.fingerprint(), second.fingerprint(), "seed {seed}");
    }
    assert_ne!(play(2, None).fingerprint(), play(3, None).fingerprint());
}

#[test]
fn a_seed_makes_the_same_world_in_another_process() {
    let output = Command::new(env!("CARGO_BIN_EXE_lease-proof"))
        .args(["sim", "--seed", "5"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let fingerprint = format!("fingerprint {:016x}", play(5, None).fingerprint());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().any(|line| line == fingerprint), "not {fingerprint}");
}

#[test]
fn what_comes_out_does_not_depend_on_the_number_of_threads() {
    let broken = Some(Broken::Tenure(TenureMutant::ReleasesOnce));
    let [one, two] = [1, 2].map(|threads| Batch::play(FROM, 300, threads, broken, |_| false));
    assert!(!one.found.is_empty());
    assert_eq!(one, two);
}

fn near(broken: Broken) -> u64 {
    let name = broken.to_string();
    let near = NEAR.iter().find(|(mutant, _)| *mutant == name);
    near.map_or(FROM, |(_, seed)| *seed)
}

#[test]
fn each_mutant_of_the_tenure_is_caught_by_the_invariants_that_are_about_it() {
    for mutant in TenureMutant::ALL {
        let broken = Broken::Tenure(*mutant);
        let by = CAUGHT.iter().find(|(listed, _)| *listed == broken);
        let (_, by) = by.unwrap_or_else(|| panic!("{mutant:?} is not in the list"));
        let hunt = hunt(broken, by, near(broken), HUNT, 2);
        assert!(
            hunt.missing.is_empty(),
            "{mutant:?} is not caught by {:?}: {hunt:?}",
            hunt.missing
        );
    }
}

#[test]
fn mutants_of_the_store_are_caught_by_the_invariants_that_are_about_them() {
    for (broken, by) in CAUGHT.iter().filter(|(broken, _)| matches!(broken, Broken::Store(_))) {
        let hunt = hunt(*broken, by, near(*broken), HUNT, 2);
        assert!(
            hunt.missing.is_empty(),
            "{broken} is not caught by {:?}: {hunt:?}",
            hunt.missing
        );
    }
}

#[test]
fn the_list_of_mutants_names_invariants_that_there_are() {
    for (broken, by) in CAUGHT {
        assert!(!by.is_empty(), "{broken}");
        for name in *by {
            assert!(
                invariant::ALL.iter().any(|known| known.name == *name),
                "{broken}: {name}"
            );
        }
    }
}

#[test]
fn a_violation_is_one_line_that_plays_it_again_and_a_non_zero_exit() {
    let proof = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_lease-proof"))
            .args(args)
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let (good, text) = proof(&["sim", "--tenures", "300", "--mutant", "ReleasesBeforeTheEnd"]);
    assert!(!good, "{text}");
    let line = text.lines().find(|line| line.starts_with("VIOLATED")).unwrap();
    let (_, again) = line.split_once("cargo xtask ").unwrap();
    let (good, text) = proof(&again.split_whitespace().collect::<Vec<_>>());
    assert!(!good && text.contains("VIOLATED"), "{text}");
}

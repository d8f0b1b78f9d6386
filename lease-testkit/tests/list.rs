//! The list of cases, and which groups hold for a store that deletes on release.

use std::collections::BTreeSet;

use lease_core::{MemoryRepo, Mutant};
use lease_testkit::{CASES, Harness};

/// A store that keeps nothing of a released lease, as with `delete_on_release`.
struct Deleting(MemoryRepo);

impl Harness for Deleting {
    type Repo = MemoryRepo;

    async fn open() -> Self {
        let repo = MemoryRepo::new();
        repo.break_rule(Mutant::ReleaseDeletes);
        Self(repo)
    }

    async fn client(&self) -> MemoryRepo {
        self.0.clone()
    }

    async fn step_clock(&self, by_us: i64) {
        self.0.step_clock(by_us);
    }
}

mod deleting {
    use super::Deleting;

    lease_testkit::conformance!(Deleting; groups = [basic, renewal, contention]);
}

#[test]
fn every_case_is_listed_once_with_its_law() {
    let names: BTreeSet<_> = CASES.iter().map(|case| (case.group, case.name)).collect();
    assert_eq!(names.len(), CASES.len());
    for case in CASES {
        let known = case.law == "Inspect" || case.law.strip_prefix('L').is_some_and(|law| law.parse::<u8>().is_ok());
        assert!(known, "{} tests a law, not {:?}", case.name, case.law);
        let sentence = case
            .says
            .starts_with(|first: char| first.is_uppercase() || first == '`');
        assert!(
            sentence && case.says.ends_with('.'),
            "{} says a sentence, not {:?}",
            case.name,
            case.says
        );
    }
    // L8 and L10 are about the driver: `tests/sql` of each backend has them.
    for law in ["L1", "L2", "L3", "L4", "L5", "L6", "L7", "L9"] {
        assert!(CASES.iter().any(|case| case.law == law), "no case tests {law}");
    }
}

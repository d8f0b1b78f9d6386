//! Which fault the next call meets.

use std::collections::{HashMap, VecDeque};

use lease_core::{Claim, Operation};

use super::{Chances, Fault};

/// What was asked of a [`FaultyRepo`](super::FaultyRepo), and what it was told to do.
#[derive(Debug, Default)]
pub(super) struct Script {
    next: HashMap<Operation, VecDeque<Fault>>,
    always: HashMap<Operation, Fault>,
    seeded: Option<(u64, Chances)>,
    calls: HashMap<Operation, u64>,
    late: Vec<(Operation, Claim)>,
}

impl Script {
    pub(super) fn next(&mut self, operation: Operation, fault: Fault) {
        self.next.entry(operation).or_default().push_back(fault);
    }

    pub(super) fn always(&mut self, operation: Operation, fault: Fault) {
        self.always.insert(operation, fault);
    }

    pub(super) fn seed(&mut self, seed: u64, chances: Chances) {
        self.seeded = Some((seed, chances));
    }

    pub(super) fn heal(&mut self) {
        self.next.clear();
        self.always.clear();
        self.seeded = None;
    }

    /// Counts a call and says what it meets: first what is scripted for the next call, then for all, then by chance.
    pub(super) fn meet(&mut self, operation: Operation) -> Option<Fault> {
        let calls = self.calls.entry(operation).or_default();
        *calls += 1;
        let call = *calls;
        let scripted = self.next.get_mut(&operation).and_then(VecDeque::pop_front);
        scripted.or_else(|| self.always.get(&operation).copied()).or_else(|| {
            self.seeded
                .and_then(|(seed, chances)| chances.draw(seed, operation, call))
        })
    }

    pub(super) fn calls(&self, operation: Operation) -> u64 {
        self.calls.get(&operation).copied().unwrap_or(0)
    }

    pub(super) fn keep(&mut self, operation: Operation, claims: &[Claim]) {
        self.late.extend(claims.iter().map(|claim| (operation, claim.clone())));
    }

    pub(super) fn take_late(&mut self) -> Vec<(Operation, Claim)> {
        std::mem::take(&mut self.late)
    }
}

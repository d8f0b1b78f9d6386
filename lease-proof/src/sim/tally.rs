//! [`Tally`]: how much happened.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use super::seen::{Answer, History, Statement, What, Who};

/// What was counted in one world, or in many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Grants that the store committed, retries not counted: the measure of a run.
    pub tenures: u64,
    /// By what is counted. See [`Tally::of`].
    pub counts: BTreeMap<&'static str, u64>,
    /// Faults of statements, by kind.
    pub faults: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Counts a world.
    #[must_use]
    pub fn of(history: &History) -> Self {
        let mut tally = Self {
            faults: history.faults.clone(),
            ..Self::default()
        };
        let (mut unanswered, mut undone) = (BTreeSet::new(), BTreeSet::new());
        for seen in &history.seen {
            let counted = match &seen.what {
                What::Sent(sent) => match sent.statement {
                    Statement::Acquire => "acquires sent",
                    Statement::Renew => "renewals sent",
                    Statement::Release => {
                        if unanswered.contains(&sent.holder) && undone.insert(sent.holder) {
                            tally.count("undos");
                        }
                        "releases sent"
                    }
                },
                What::Answered { sent, answer, .. } => match (sent.statement, answer) {
                    (Statement::Acquire, Answer::Unknown) => {
                        unanswered.insert(sent.holder);
                        "acquires without an answer"
                    }
                    (Statement::Renew, Answer::Lost { .. }) => "losses",
                    _ => continue,
                },
                What::Executed(executed) if matches!(executed.answer, Answer::Granted(_)) => {
                    let (name, now) = (executed.sent.name, executed.now);
                    let before = executed.before[name];
                    if before.is_some_and(|row| row.is_live(now)) {
                        "retries granted"
                    } else {
                        tally.tenures += 1;
                        match before {
                            Some(row) if row.released_at.is_none() && row.who != Who::Operator => "takeovers",
                            _ => continue,
                        }
                    }
                }
                What::Started { .. } => "runs of f",
                What::Polled(_) => "polls of f",
                What::Stands { .. } => "pods that stood still",
                What::Crashed { .. } => "pods that crashed",
                What::Operator { .. } => "acts of operators",
                What::Stepped { .. } => "steps of the clock",
                What::Outage(true) => "outages",
                What::Claimed(_) => "clones asked",
                What::Abandoned { .. } => "calls abandoned",
                What::Over => "worlds",
                _ => continue,
            };
            tally.count(counted);
        }
        tally
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }
}

impl AddAssign<&Self> for Tally {
    fn add_assign(&mut self, other: &Self) {
        self.tenures += other.tenures;
        for (what, count) in &other.counts {
            *self.counts.entry(what).or_default() += count;
        }
        for (what, count) in &other.faults {
            *self.faults.entry(what).or_default() += count;
        }
    }
}

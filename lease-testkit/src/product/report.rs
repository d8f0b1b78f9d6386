//! [`Report`]: what was run, so that nothing is ever tested by accident only.

use std::collections::BTreeMap;
use std::fmt;

/// How many combinations were run, and to how many polls each future went.
#[derive(Debug, Clone, Default)]
pub struct Report {
    rows: BTreeMap<String, Row>,
}

#[derive(Debug, Clone, Default)]
struct Row {
    combinations: usize,
    dropped: usize,
    answers: usize,
    polls: Vec<usize>,
}

impl Report {
    /// How many combinations were run.
    #[must_use]
    pub fn combinations(&self) -> usize {
        self.rows.values().map(|row| row.combinations).sum()
    }

    /// How many of them dropped a future that had not ended.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.rows.values().map(|row| row.dropped).sum()
    }

    /// How many pairs of a future and an answer were run to the future's own end.
    #[must_use]
    pub fn answers(&self) -> usize {
        self.rows.values().map(|row| row.answers).sum()
    }

    /// Adds what another run did.
    pub fn add(&mut self, other: Self) {
        for (future, row) in other.rows {
            let own = self.rows.entry(future).or_default();
            own.combinations += row.combinations;
            own.dropped += row.dropped;
            own.answers += row.answers;
            own.polls.extend(row.polls);
        }
    }

    pub(super) fn count(&mut self, future: &impl fmt::Debug, ended: bool) {
        let row = self.rows.entry(format!("{future:?}")).or_default();
        row.combinations += 1;
        row.dropped += usize::from(!ended);
    }

    pub(super) fn ends(&mut self, future: &impl fmt::Debug, polls: usize) {
        let row = self.rows.entry(format!("{future:?}")).or_default();
        row.answers += 1;
        row.polls.push(polls);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (future, row) in &self.rows {
            let (combinations, dropped, answers) = (row.combinations, row.dropped, row.answers);
            write!(f, "{future:20} {combinations:5} combinations, {dropped:5} dropped")?;
            if let (Some(least), Some(most)) = (row.polls.iter().min(), row.polls.iter().max()) {
                write!(f, ", {answers:3} answers, ends after {least} to {most} polls")?;
            }
            writeln!(f)?;
        }
        write!(f, "{:20} {:5} combinations", "all", self.combinations())
    }
}

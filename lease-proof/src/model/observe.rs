//! [`Observed`]: what the rules are told of a step.

use lease_core::tenure::{Effect, Event};
use lease_core::{Moment, Row};

use super::state::Entry;
use super::wire::{Answer, Statement};

/// Something that a rule may judge.
#[derive(Debug, Clone, Copy)]
pub enum Observed<'a> {
    /// An acquire is sent.
    Asked(Asked),
    /// The store executed a statement.
    Executed(Executed<'a>),
    /// A tenure was told an event.
    Told(Told<'a>),
}

/// An acquire is sent.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Whether a release was sent of the same holder before.
    pub burned: bool,
}

/// The store executed a statement.
#[derive(Debug, Clone, Copy)]
pub struct Executed<'a> {
    /// Which.
    pub statement: Statement,
    /// For whom.
    pub holder: &'a str,
    /// The row before.
    pub before: Option<&'a Row>,
    /// The row after.
    pub after: Option<&'a Row>,
    /// What it said.
    pub answer: Answer,
    /// The database's clock, in microseconds.
    pub now: i64,
}

impl<'a> Executed<'a> {
    /// The row before, if it was live.
    #[must_use]
    pub fn live_before(&self) -> Option<&'a Row> {
        self.before.filter(|row| row.expires_at > self.now)
    }

    /// The row before, if it was live and this holder's.
    #[must_use]
    pub fn own_before(&self) -> Option<&'a Row> {
        self.live_before().filter(|row| row.holder == self.holder)
    }

    /// Whether the acquire was granted, be it as a retry.
    #[must_use]
    pub const fn granted(&self) -> bool {
        matches!(self.answer, Answer::Granted(_))
    }
}

/// A tenure was told an event.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// Which.
    pub event: Event,
    /// If it is an answer: when the statement had been sent.
    pub sent_at: Option<Moment>,
    /// The tenure before.
    pub before: &'a Entry,
    /// The tenure after.
    pub after: &'a Entry,
    /// What it wanted done.
    pub effects: &'a [Effect],
    /// By the pod's clock.
    pub now: Moment,
    /// Whether a release of this holder was sent before.
    pub burned: bool,
}

//! [`Message`]: a statement on its way to the store, or its answer on the way back.

use std::time::Duration;

use lease_core::tenure::Event;
use lease_core::{Moment, Token};

/// What is asked of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Statement {
    /// `Repo::acquire`.
    Acquire,
    /// `Repo::renew`.
    Renew,
    /// `Repo::release` with this minimum.
    Release(Duration),
}

impl Statement {
    /// What a tenure is told when there is no answer.
    #[must_use]
    pub const fn failed(self, may_have_executed: bool) -> Event {
        match self {
            Self::Acquire => Event::AcquireFailed { may_have_executed },
            Self::Renew => Event::RenewFailed(lease_core::tenure::Spread::NONE),
            Self::Release(_) => Event::ReleaseFailed,
        }
    }
}

/// What the store said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// To an acquire.
    Granted(Token),
    /// To an acquire.
    Busy,
    /// To a renewal.
    Renewed,
    /// To a renewal.
    Lost {
        /// By an operator.
        evicted: bool,
    },
    /// To a release.
    Released,
    /// To a release.
    NotHeld,
}

impl Answer {
    /// What a tenure is told.
    #[must_use]
    pub const fn event(self) -> Event {
        match self {
            Self::Granted(token) => Event::Granted(token),
            Self::Busy => Event::Busy,
            Self::Renewed => Event::Renewed,
            Self::Lost { evicted } => Event::Lost { evicted },
            Self::Released => Event::Released,
            Self::NotHeld => Event::NotHeld,
        }
    }
}

/// How far a statement has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// On its way; its pod waits for the answer.
    Waiting,
    /// On its way; nobody waits. It may still execute, however late.
    Adrift,
    /// Executed; the answer is on its way.
    Answered(Answer),
}

/// One statement in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    /// From which pod.
    pub pod: u8,
    /// From which of its tenures.
    pub serial: u8,
    /// What it says.
    pub statement: Statement,
    /// How far it has come.
    pub stage: Stage,
    /// When it was sent by the pod's clock; zero once nobody waits.
    pub sent_at: Moment,
}

impl Message {
    /// The same with nobody waiting for it.
    #[must_use]
    pub const fn adrift(self) -> Self {
        Self {
            stage: Stage::Adrift,
            sent_at: Moment::ZERO,
            ..self
        }
    }

    /// Whether it is still to be executed.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Adrift)
    }
}

/// Everything in flight. There is no order on the way: it is kept sorted, so that equal states are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Wire(Vec<Message>);

impl Wire {
    /// All messages.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.0
    }

    /// Adds one.
    pub fn push(&mut self, message: Message) {
        let at = self.0.partition_point(|other| *other < message);
        self.0.insert(at, message);
    }

    /// Takes one out.
    pub fn take(&mut self, at: usize) -> Message {
        self.0.remove(at)
    }

    /// Nobody waits any more for what `which` names: requests go adrift, answers go nowhere.
    pub fn disown(&mut self, which: impl Fn(&Message) -> bool) {
        let (theirs, mut rest): (Vec<_>, Vec<_>) = self.0.drain(..).partition(which);
        let requests = theirs.into_iter().filter(Message::is_request);
        rest.extend(requests.map(Message::adrift));
        rest.sort_unstable();
        self.0 = rest;
    }
}

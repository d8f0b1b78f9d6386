//! Which fault outside of the assumptions explains what was seen.

use serde::Serialize;

use crate::engine::TTL;
use crate::fault::{Kind, Scope};

/// A fault that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Struck {
    pub(crate) kind: Kind,
    /// Which pod or server, counted from 0.
    pub(crate) target: usize,
    /// In nanoseconds.
    pub(crate) from: u64,
    /// When it was over.
    pub(crate) until: u64,
    /// How long after that the last pod was at work again; `None` if one never was.
    pub(crate) recovered_ms: Option<u64>,
}

/// How long a thawed process may take for the poll that it was frozen in, and to look at the clock.
const THAW: u64 = 200_000_000;

impl Struck {
    /// How long after its end it explains something: a row that was granted under another clock, or before a commit that is
    /// lost, lives for a ttl.
    fn echo(&self) -> u64 {
        match self.kind {
            Kind::PodFrozen => THAW,
            _ => u64::try_from(TTL.as_nanos()).expect("a short ttl"),
        }
    }

    fn explains(&self, from: u64, to: u64) -> bool {
        self.kind.scope() == Scope::Outside && from <= self.until + self.echo() && to >= self.from
    }
}

/// What two pods did at a moment.
pub(super) fn of_pods(struck: &[Struck], at: u64, pods: [usize; 2]) -> Option<Kind> {
    let about = |fault: &&Struck| fault.explains(at, at) && (!fault.kind.is_of_a_pod() || pods.contains(&fault.target));
    struck.iter().find(about).map(|fault| fault.kind)
}

/// What was seen of the rows.
pub(super) fn of_all(struck: &[Struck], from: u64, to: u64) -> Option<Kind> {
    let about = |fault: &&Struck| fault.explains(from, to) && !fault.kind.is_of_a_pod();
    struck.iter().find(about).map(|fault| fault.kind)
}

/// A write under a token smaller than one that had been granted: only where that grant was lost.
pub(super) fn of_lost_commits(struck: &[Struck], at: u64) -> Option<Kind> {
    let about = |fault: &&Struck| fault.explains(at, at) && fault.kind == Kind::FailoverLosingCommits;
    struck.iter().find(about).map(|fault| fault.kind)
}

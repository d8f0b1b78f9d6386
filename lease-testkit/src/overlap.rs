//! [`Overlap`]: notices when two are inside at once, or when tokens do not grow. For threads and tasks of one process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lease_core::Token;

/// Watches a critical section per lease name. Clones watch the same sections.
///
/// Whoever believes to hold a lease calls [`enter`](Self::enter) and keeps the guard for as long as it works. Nothing
/// panics on the spot: the first violation is kept, and [`finish`](Self::finish) reports it.
///
/// ```
/// use lease_core::Token;
/// use lease_testkit::Overlap;
///
/// let overlap = Overlap::new();
/// drop(overlap.enter("job", Token::new(7)?));
/// let first = overlap.enter("job", Token::new(8)?);
/// let second = overlap.enter("job", Token::new(9)?);
/// assert!(overlap.finish().is_err(), "two are inside");
/// # drop((first, second));
/// # Ok::<(), lease_core::InvalidName>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Overlap {
    state: Arc<Mutex<State>>,
    ignores_tokens: bool,
}

#[derive(Debug, Default)]
struct State {
    names: HashMap<String, Name>,
    summary: Summary,
    violation: Option<Violation>,
}

#[derive(Debug, Default)]
struct Name {
    inside: Vec<Token>,
    last: Option<Token>,
}

/// What a checker saw when nothing was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// How often a section was entered.
    pub sections: u64,
    /// How many different leases there were.
    pub names: u64,
}

/// What a checker found wrong first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Two were inside at once.
    #[error("lease {name:?}: token {entered} entered while token {inside} was still inside")]
    TwoInside {
        /// Which lease.
        name: String,
        /// The token of the one inside.
        inside: Token,
        /// The token of the one that entered.
        entered: Token,
    },
    /// A later section has no greater token.
    #[error("lease {name:?}: token {entered} entered after token {before}: tokens must grow")]
    TokenDidNotGrow {
        /// Which lease.
        name: String,
        /// The token of the section before.
        before: Token,
        /// The token of the one that entered.
        entered: Token,
    },
}

impl Overlap {
    /// A checker that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at overlaps alone: for stores that delete the row on release, and the order of tokens with it.
    #[must_use]
    pub fn ignoring_tokens(mut self) -> Self {
        self.ignores_tokens = true;
        self
    }

    /// Enters the section of a lease; dropping the guard leaves it.
    #[must_use = "dropping it leaves the section"]
    pub fn enter(&self, name: &str, token: Token) -> Section {
        let mut state = self.state();
        state.summary.sections += 1;
        let seen = state.names.entry(name.to_owned()).or_default();
        let name = name.to_owned();
        let before = seen.last.filter(|before| *before >= token && !self.ignores_tokens);
        let violation = match (seen.inside.first(), before) {
            (Some(&inside), _) => Some(Violation::TwoInside {
                name: name.clone(),
                inside,
                entered: token,
            }),
            (None, Some(before)) => Some(Violation::TokenDidNotGrow {
                name: name.clone(),
                before,
                entered: token,
            }),
            (None, None) => None,
        };
        seen.inside.push(token);
        seen.last = seen.last.max(Some(token));
        if state.violation.is_none() {
            state.violation = violation;
        }
        Section {
            overlap: self.clone(),
            name,
            token,
        }
    }

    /// Reports the first violation, or how much was seen without one.
    ///
    /// # Errors
    /// [`Violation`]: which tokens were inside together, or did not grow.
    pub fn finish(&self) -> Result<Summary, Violation> {
        let state = self.state();
        match &state.violation {
            Some(violation) => Err(violation.clone()),
            None => Ok(Summary {
                names: state.names.len() as u64,
                ..state.summary
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Being inside: see [`Overlap::enter`].
#[derive(Debug)]
pub struct Section {
    overlap: Overlap,
    name: String,
    token: Token,
}

impl Drop for Section {
    fn drop(&mut self) {
        let mut state = self.overlap.state();
        if let Some(seen) = state.names.get_mut(&self.name)
            && let Some(at) = seen.inside.iter().position(|token| *token == self.token)
        {
            seen.inside.remove(at);
        }
    }
}

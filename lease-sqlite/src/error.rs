//! From a failure of SQLite to a [`RepoError`] that says what to do.
//!
//! Diesel keeps no result code of SQLite's but those of constraints. Its texts are fixed and in one language, so they are
//! what is read here; a test makes each failure for real.

use diesel::result::{ConnectionError, Error as DieselError};
use lease_core::{LeaseName, Operation, RepoError, RepoErrorKind};

use crate::place::Place;

/// What an error is about.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    operation: Operation,
    lease: Option<LeaseName>,
}

impl Subject {
    pub(crate) const fn new(operation: Operation) -> Self {
        Self { operation, lease: None }
    }

    pub(crate) fn of(operation: Operation, lease: &LeaseName) -> Self {
        Self {
            operation,
            lease: Some(lease.clone()),
        }
    }

    pub(crate) fn error(&self, kind: RepoErrorKind) -> RepoError {
        let error = RepoError::new(kind, self.operation);
        match &self.lease {
            Some(name) => error.with_lease(name),
            None => error,
        }
    }
}

/// Why something failed, and what follows.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: RepoErrorKind,
    text: String,
    /// Whether SQLite says that nothing was changed.
    undone: bool,
    /// Whether the same statement may simply be tried again: another has a lock.
    pub(crate) is_locked: bool,
    /// Whether the connection is of no more use.
    pub(crate) is_broken: bool,
}

impl Failure {
    /// Something of ours that SQLite was not even asked.
    pub(crate) fn new(kind: RepoErrorKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            undone: true,
            is_locked: false,
            is_broken: false,
        }
    }

    /// A connection could not be opened.
    pub(crate) fn opening(place: &Place, error: &ConnectionError) -> Self {
        match place.obstacle() {
            Some((kind, text)) => Self::new(kind, text),
            None => Self::new(RepoErrorKind::Unavailable, error.to_string()),
        }
    }

    /// A statement failed.
    pub(crate) fn statement(place: &Place, error: &DieselError) -> Self {
        let DieselError::DatabaseError(_, information) = error else {
            // An answer that can't be read: the statement was executed.
            let mut failure = Self::new(RepoErrorKind::Other, error.to_string());
            failure.undone = false;
            return failure;
        };
        let text = information.message();
        let begins = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
        let (kind, undone) = if begins(&[
            "database is locked",
            "database table is locked",
            "database schema is locked",
        ]) {
            (RepoErrorKind::Conflict, true)
        } else if begins(&["attempt to write a readonly database"]) {
            (RepoErrorKind::ReadOnly, true)
        } else if begins(&["no such table"]) {
            (RepoErrorKind::SchemaMissing, true)
        } else if begins(&[
            "no such column",
            "ON CONFLICT clause does not match",
            "cannot store",
            "NOT NULL constraint",
        ]) || text.contains("has no column named")
        {
            (RepoErrorKind::SchemaMismatch, true)
        } else if begins(&["file is not a database", "unsupported file format"]) {
            (RepoErrorKind::Config, true)
        } else if begins(&["unable to open database file"]) {
            (RepoErrorKind::Unavailable, true)
        } else if begins(&["database or disk is full"]) {
            (RepoErrorKind::Other, true)
        } else {
            (RepoErrorKind::Other, false)
        };
        let (kind, text) = match kind {
            // The file itself can be opened, so it is those that SQLite keeps beside it.
            RepoErrorKind::Unavailable => place.obstacle().unwrap_or_else(|| {
                let hint = "SQLite keeps files beside it, so its folder must be writable too";
                (RepoErrorKind::ReadOnly, format!("{text}: {hint}"))
            }),
            _ => (kind, text.to_owned()),
        };
        Self {
            kind,
            text,
            undone,
            is_locked: kind == RepoErrorKind::Conflict,
            // A new connection may know more than one to which anything else happened.
            is_broken: !matches!(
                kind,
                RepoErrorKind::Conflict | RepoErrorKind::SchemaMissing | RepoErrorKind::SchemaMismatch
            ),
        }
    }

    /// The error for users, which names the file.
    pub(crate) fn error(self, place: &Place, subject: &Subject) -> RepoError {
        let text = if self.text.contains(&place.to_string()) {
            self.text
        } else {
            format!("{place}: {}", self.text)
        };
        let error = subject.error(self.kind).with_source(text);
        if self.undone { error.never_executed() } else { error }
    }
}

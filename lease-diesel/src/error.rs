//! What an error is about, what comes of it, and errors of connections. What a failed statement means is the engine's to
//! say.

use std::error::Error as StdError;
use std::fmt;

use deadpool::managed::{PoolError, TimeoutType};
use diesel::result::Error as DieselError;
use lease_core::{LeaseName, Operation, RepoError, RepoErrorKind};

/// What an error is about.
#[derive(Debug, Clone)]
pub struct Subject {
    operation: Operation,
    lease: Option<LeaseName>,
    deletes: bool,
}

impl Subject {
    /// An operation on several leases, or on none.
    #[must_use]
    pub fn new(operation: Operation) -> Self {
        Self {
            operation,
            lease: None,
            deletes: false,
        }
    }

    /// An operation on one lease.
    #[must_use]
    pub fn of(operation: Operation, lease: &LeaseName) -> Self {
        Self {
            lease: Some(lease.clone()),
            ..Self::new(operation)
        }
    }

    /// Whether it may delete rows, which needs one more grant. It does not unless it is told.
    #[must_use]
    pub fn deleting(mut self, deletes: bool) -> Self {
        self.deletes = deletes;
        self
    }

    /// Whether it may delete rows.
    #[must_use]
    pub fn deletes(&self) -> bool {
        self.deletes
    }

    /// An error about it.
    #[must_use]
    pub fn error(&self, kind: RepoErrorKind) -> RepoError {
        let error = RepoError::new(kind, self.operation);
        match &self.lease {
            Some(name) => error.with_lease(name),
            None => error,
        }
    }
}

/// Why a task failed.
#[derive(Debug)]
pub enum Failure {
    /// What the driver reported, still to be explained.
    Driver(DieselError),
    /// Explained already; nothing is under way in the session, and no transaction is open.
    Decided(RepoError),
}

impl From<DieselError> for Failure {
    fn from(error: DieselError) -> Self {
        Self::Driver(error)
    }
}

impl From<RepoError> for Failure {
    fn from(error: RepoError) -> Self {
        Self::Decided(error)
    }
}

/// An error, and whether to try the task again.
#[derive(Debug)]
pub enum Verdict {
    /// Other transactions were in the way: again, as long as there is time.
    Conflict(RepoError),
    /// The server refused the statement and nothing is wrong that we know of: again, a few times.
    Unexplained(RepoError),
    /// The session is gone, and whether the statement was executed is open: again if the session may have died in the pool,
    /// which not every driver notices.
    Gone(RepoError),
    /// Not again.
    Final(RepoError),
}

/// What a look at the server found to be wrong.
#[derive(Debug)]
pub struct Reason {
    /// What to do about it.
    pub kind: RepoErrorKind,
    /// What it is, as a sentence without a full stop.
    pub text: String,
}

impl Reason {
    /// A reason in words.
    pub fn new(kind: RepoErrorKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }

    /// An error that says the reason, and keeps what the driver reported as its source.
    #[must_use]
    pub fn error(self, subject: &Subject, cause: Option<DieselError>) -> RepoError {
        subject
            .error(self.kind)
            .with_source(Explained { text: self.text, cause })
    }
}

/// A cause with what was found out about it.
#[derive(Debug)]
struct Explained {
    text: String,
    cause: Option<DieselError>,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for Explained {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

/// A connection could not be opened. Nothing was executed.
#[derive(Debug)]
pub struct ConnectFailure {
    /// What to do about it.
    pub kind: RepoErrorKind,
    /// What the driver reported.
    pub source: Box<dyn StdError + Send + Sync>,
}

impl ConnectFailure {
    /// The server gave no connection, and may give one later.
    pub fn unavailable(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self {
            kind: RepoErrorKind::Unavailable,
            source: source.into(),
        }
    }

    /// Says which server it was: of several hosts, or several databases, a person must know which one to look at. What is too
    /// long for the name of a host and a port says nothing to anybody, and stays unsaid.
    #[must_use]
    pub fn at(self, server: String) -> Self {
        if server.len() > LONGEST {
            return self;
        }
        Self {
            kind: self.kind,
            source: Box::new(At {
                server,
                source: self.source,
            }),
        }
    }

    /// The error of whoever needed the connection.
    #[must_use]
    pub fn error(self, subject: &Subject) -> RepoError {
        subject.error(self.kind).with_source(self.source).never_executed()
    }
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl StdError for ConnectFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.source()
    }
}

/// A host's name has at most 255 bytes (RFC 1035, section 2.3.4), a port five digits.
const LONGEST: usize = 255 + ":65535".len();

/// Whether the host in this URL can be named to people: there is no other reading of it, by which what looks like the host is a
/// piece of a password with an `@` or a `/` that nobody encoded.
#[must_use]
pub fn names_a_host(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else {
        return true;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    rest.matches('@').count() == 1 && rest[..end].contains('@')
}

/// What a server, or the way to it, is to blame for.
#[derive(Debug)]
struct At {
    server: String,
    source: Box<dyn StdError + Send + Sync>,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.server, self.source)
    }
}

impl StdError for At {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.source)
    }
}

/// An error with a text of our own and no cause.
pub fn text(text: impl Into<String>) -> Box<dyn StdError + Send + Sync> {
    text.into().into()
}

/// The pool gave no connection: its manager's error, or one of its own. Nothing was executed.
pub(crate) fn no_connection<E: StdError + Send + Sync + 'static>(
    subject: &Subject,
    error: PoolError<E>,
    of_manager: impl FnOnce(E) -> RepoError,
) -> RepoError {
    let kind = match error {
        PoolError::Backend(error) => return of_manager(error).never_executed(),
        PoolError::Timeout(TimeoutType::Wait) => RepoErrorKind::Timeout,
        PoolError::NoRuntimeSpecified => RepoErrorKind::Config,
        _ => RepoErrorKind::Unavailable,
    };
    subject.error(kind).with_source(error).never_executed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_may_be_a_piece_of_a_password_is_not_named() {
        for (url, named) in [
            ("postgres://u:p@h/db", true),
            ("postgres://u@h:5432,i:5432/db?sslmode=require", true),
            ("host=h password='p@ss/word'", true),
            ("postgres://u:p@ss@h/db", false),
            ("postgres://u:p@ss,x@h/db", false),
            ("postgres://u:p@ss/word@h/db", false),
            ("mysql://u:12/34@h/db", false),
            ("mysql://u:p@ss#word@h/db", false),
            ("postgres://h/db", false),
        ] {
            assert_eq!(names_a_host(url), named, "{url}");
        }
    }

    #[test]
    fn a_failure_says_at_which_server_and_keeps_its_cause() {
        let failure = ConnectFailure::unavailable(std::io::Error::other("refused")).at("h:1".to_owned());
        let error = failure.error(&Subject::new(lease_core::Operation::Connect));
        assert!(error.line().ends_with(": h:1: refused"), "{}", error.line());
        assert!(error.source().and_then(|at| at.source()).is_some());
        assert_eq!(error.kind(), RepoErrorKind::Unavailable);
    }

    #[test]
    fn a_megabyte_of_host_is_not_repeated() {
        let failure = ConnectFailure::unavailable("refused").at("h".repeat(1 << 20));
        assert_eq!(failure.to_string(), "refused");
    }
}

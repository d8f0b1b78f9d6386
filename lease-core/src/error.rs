//! [`RepoError`]: what a backend reports when it has no answer.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::LeaseName;

/// What to do about a failure of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RepoErrorKind {
    /// The URL or a setting can't be used. Retrying does not help.
    Config,
    /// The server refused us: password, role, database name or grants.
    Denied,
    /// The table is missing. `migrate` creates it.
    SchemaMissing,
    /// The table is there, but not as it must be. `check_schema` says what is wrong, `migrate` mends what it can.
    SchemaMismatch,
    /// The server can't be reached, or the connection broke.
    Unavailable,
    /// No answer within the operation's limit.
    Timeout,
    /// The server takes no writes: a standby, or one set read-only.
    ReadOnly,
    /// Other transactions were in the way for the whole of the operation's limit.
    Conflict,
    /// Something else; the source says what.
    Other,
}

impl RepoErrorKind {
    /// The kind as one word, for logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Denied => "denied",
            Self::SchemaMissing => "schema_missing",
            Self::SchemaMismatch => "schema_mismatch",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::ReadOnly => "read_only",
            Self::Conflict => "conflict",
            Self::Other => "other",
        }
    }

    /// Whether the same call may succeed later with nobody changing a setting, a grant or the schema.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        !matches!(
            self,
            Self::Config | Self::Denied | Self::SchemaMissing | Self::SchemaMismatch
        )
    }

    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::Config => "the configuration can't be used: correct the URL or the setting",
            Self::Denied => "the server refused access: check user, password, database and grants",
            Self::SchemaMissing => "the lease table is missing: run migrate, of the repo or of the command `lease`",
            Self::SchemaMismatch => "the lease table is not as it must be: run check_schema, then migrate",
            Self::Unavailable => {
                "the server can't be reached: see whether it runs, and whether the URL names its host and port"
            }
            Self::Timeout => {
                "no answer in time: the server is overloaded, stalled or cut off, or the pool is exhausted"
            }
            Self::ReadOnly => "the server takes no writes: connect to the primary",
            Self::Conflict => "other transactions were in the way the whole time",
            Self::Other => "the store failed",
        }
    }
}

impl fmt::Display for RepoErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a backend was doing when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Reading the URL, or the first connection.
    Connect,
    /// `Repo::acquire`.
    Acquire,
    /// `Repo::renew` or `Repo::renew_all`.
    Renew,
    /// `Repo::release`, the undo of an unanswered acquire included.
    Release,
    /// `migrate`.
    Migrate,
    /// `check_schema`.
    CheckSchema,
    /// A method of `Inspect`, by its name.
    Inspect(&'static str),
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Migrate => "migrate",
            Self::CheckSchema => "check_schema",
            Self::Inspect(method) => method,
        })
    }
}

/// The store gave no answer: for `Repo` this means *unknown*, never *no*.
///
/// `Display` says what happened to which lease and what to do; [`source`](Error::source) has the cause.
/// Neither ever shows a password.
#[derive(Clone)]
pub struct RepoError {
    kind: RepoErrorKind,
    operation: Operation,
    lease: Option<LeaseName>,
    executed: Executed,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// Whether the failed statement may have taken effect, or may still do so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Executed {
    Never,
    Perhaps,
}

impl RepoError {
    /// A failure of which it is not known whether the statement took effect, or still will.
    #[must_use]
    pub const fn new(kind: RepoErrorKind, operation: Operation) -> Self {
        Self {
            kind,
            operation,
            lease: None,
            executed: Executed::Perhaps,
            source: None,
        }
    }

    /// Says which lease it was about.
    #[must_use]
    pub fn with_lease(mut self, name: &LeaseName) -> Self {
        self.lease = Some(name.clone());
        self
    }

    /// Keeps the cause. It must not show a password.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// States that the statement took no effect and never will: it was not sent, or the server answered that it failed.
    ///
    /// A backend says so only with proof. The keeper then has nothing to undo.
    #[must_use]
    pub const fn never_executed(mut self) -> Self {
        self.executed = Executed::Never;
        self
    }

    /// What to do about it.
    #[must_use]
    pub const fn kind(&self) -> RepoErrorKind {
        self.kind
    }

    /// What was being done.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// Which lease it was about, if it was about one.
    #[must_use]
    pub const fn lease(&self) -> Option<&LeaseName> {
        self.lease.as_ref()
    }

    /// Whether the statement may have taken effect, or still may: see [`never_executed`](Self::never_executed).
    #[must_use]
    pub const fn may_have_executed(&self) -> bool {
        matches!(self.executed, Executed::Perhaps)
    }

    /// All there is to say for a person, in one line: what `Display` says, then each cause, unless it was said already, as drivers'
    /// errors repeat what is below them.
    #[must_use]
    pub fn line(&self) -> String {
        let causes = self.causes();
        let line = if causes.is_empty() {
            self.to_string()
        } else {
            format!("{self}: {causes}")
        };
        line.replace(['\n', '\r'], " ")
    }

    /// The causes, from the nearest to the deepest, each unless it was said already. Empty if there is none.
    pub(crate) fn causes(&self) -> String {
        let causes = std::iter::successors(self.source(), |&error| error.source());
        let mut said = String::new();
        for more in causes.map(ToString::to_string) {
            if said.is_empty() {
                said = more;
            } else if !said.contains(&more) {
                said = format!("{said}: {more}");
            }
        }
        said
    }
}

impl fmt::Display for RepoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lease {
            Some(name) => write!(
                f,
                "{} of lease {:?} failed: {}",
                self.operation,
                name.as_str(),
                self.kind.advice()
            ),
            None => write!(f, "{} failed: {}", self.operation, self.kind.advice()),
        }
    }
}

/// The kind and the [line](RepoError::line): a `main` that returns errors prints this.
impl fmt::Debug for RepoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.line())
    }
}

impl Error for RepoError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As mysql_async has it: an error whose text ends with that of its source.
    #[derive(Debug)]
    struct Outer(std::io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "Server error: {}", self.0)
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_main_that_returns_it_shows_what_to_do_and_why_each_once_and_in_one_line() {
        let error = RepoError::new(RepoErrorKind::ReadOnly, Operation::Renew)
            .with_lease(&LeaseName::from_static("job"))
            .with_source(Outer(std::io::Error::other("a standby,\nfor now")));
        assert_eq!(
            format!("{error:?}"),
            "ReadOnly: renew of lease \"job\" failed: the server takes no writes: connect to the primary: \
             Server error: a standby, for now"
        );
    }
}

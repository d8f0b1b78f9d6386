//! From a failure of the driver to a [`RepoError`] that says what to do.
//!
//! Diesel keeps the SQLSTATE of a few errors only, and texts are localised by the server. So a failed statement is
//! explained by asking the server, on the same connection: that it answers is also the proof that the statement was
//! rolled back, since an error that leaves the session alive ends its autocommit transaction.

use std::error::Error as StdError;
use std::fmt;

use diesel::result::{DatabaseErrorKind, Error as DieselError, QueryResult};
use diesel_async::pooled_connection::PoolError as ManagerError;
use diesel_async::pooled_connection::deadpool::PoolError;
use lease_core::{LeaseName, Operation, RepoError, RepoErrorKind};

use crate::schema;
use crate::session::ConnectFailure;
use crate::sql;
use crate::target::{Session, Target};

/// What an error is about.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) operation: Operation,
    pub(crate) lease: Option<LeaseName>,
    /// Whether the statement may delete, which needs one more grant.
    deletes: bool,
}

impl Subject {
    pub(crate) fn new(operation: Operation) -> Self {
        Self {
            operation,
            lease: None,
            deletes: false,
        }
    }

    pub(crate) fn of(operation: Operation, lease: &LeaseName) -> Self {
        Self {
            operation,
            lease: Some(lease.clone()),
            deletes: false,
        }
    }

    pub(crate) fn deleting(mut self, deletes: bool) -> Self {
        self.deletes = deletes;
        self
    }

    pub(crate) fn error(&self, kind: RepoErrorKind) -> RepoError {
        let error = RepoError::new(kind, self.operation);
        match &self.lease {
            Some(name) => error.with_lease(name),
            None => error,
        }
    }
}

/// Why a task failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What the driver reported, still to be explained.
    Driver(DieselError),
    /// Explained already.
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

/// An error, and whether to try the statement again.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Other transactions were in the way: again, as long as there is time.
    Conflict(RepoError),
    /// The server refused the statement and nothing is wrong that we know of, as after a deadlock or a lock timeout,
    /// whose codes the driver drops: again, a few times.
    Unexplained(RepoError),
    /// Not again.
    Final(RepoError),
}

/// Finds out what a failed statement means. The connection is good afterwards unless the verdict is `Final`.
pub(crate) async fn explain(session: &mut Session<'_>, subject: &Subject, error: DieselError) -> Verdict {
    use DatabaseErrorKind as Kind;
    match &error {
        DieselError::DatabaseError(Kind::SerializationFailure, _) => Verdict::Conflict(
            subject
                .error(RepoErrorKind::Conflict)
                .never_executed()
                .with_source(error),
        ),
        DieselError::DatabaseError(Kind::ReadOnlyTransaction, _) => Verdict::Final(
            subject
                .error(RepoErrorKind::ReadOnly)
                .never_executed()
                .with_source(error),
        ),
        DieselError::DatabaseError(Kind::UnableToSendCommand | Kind::ClosedConnection, _) => {
            Verdict::Final(subject.error(RepoErrorKind::Unavailable).with_source(error))
        }
        DieselError::DatabaseError(..) => match reason(session, subject).await {
            Ok(Some(reason)) => Verdict::Final(reason.error(subject, Some(error)).never_executed()),
            Ok(None) => Verdict::Unexplained(subject.error(RepoErrorKind::Other).never_executed().with_source(error)),
            // The session ended with the statement, as when the server is stopped: whether it committed is open.
            Err(_) => Verdict::Final(subject.error(RepoErrorKind::Unavailable).with_source(error)),
        },
        // An answer of another type, or a null where there is none: the statement was executed, and the table is why.
        DieselError::DeserializationError(_) => Verdict::Final(match reason(session, subject).await {
            Ok(Some(reason)) => reason.error(subject, Some(error)),
            _ => subject.error(RepoErrorKind::Other).with_source(error),
        }),
        _ => Verdict::Final(subject.error(RepoErrorKind::Other).with_source(error)),
    }
}

/// What a probe found to be wrong.
pub(crate) struct Reason {
    pub(crate) kind: RepoErrorKind,
    pub(crate) text: String,
}

impl Reason {
    pub(crate) fn new(kind: RepoErrorKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }

    pub(crate) fn error(self, subject: &Subject, cause: Option<DieselError>) -> RepoError {
        subject
            .error(self.kind)
            .with_source(Explained { text: self.text, cause })
    }
}

/// Looks for what is wrong with the server, the table or our grants.
pub(crate) async fn reason(session: &mut Session<'_>, subject: &Subject) -> Result<Option<Reason>, DieselError> {
    let grants = if subject.deletes {
        "SELECT,INSERT,UPDATE,DELETE"
    } else {
        "SELECT,INSERT,UPDATE"
    };
    let (read_only, found, out_of_reach, missing_grants) = probe(session, grants).await?;
    Ok(if !found {
        Some(not_found(session.target, out_of_reach))
    } else if let Some(problems) = schema::problems(session).await? {
        Some(Reason::new(RepoErrorKind::SchemaMismatch, problems))
    } else if read_only {
        Some(Reason::new(RepoErrorKind::ReadOnly, "the session is read-only"))
    } else if !missing_grants.is_empty() {
        let text = format!("the role lacks {missing_grants} on the table {}", session.target);
        Some(Reason::new(RepoErrorKind::Denied, text))
    } else {
        None
    })
}

/// Whether the server is read-only, the table is there, it is out of reach, and which of the grants are missing.
pub(crate) async fn probe(session: &mut Session<'_>, grants: &str) -> QueryResult<(bool, bool, bool, String)> {
    let schema = session.target.schema().unwrap_or_default().to_owned();
    let values = [sql::Value::Text(grants), sql::Value::Text(&schema)];
    sql::only(session.rows(sql::Probe, &values).await?)
}

/// What it means that the table is not found.
pub(crate) fn not_found(target: &Target, out_of_reach: bool) -> Reason {
    if out_of_reach {
        let text = format!("the role has no USAGE on the schema of the table {target}");
        return Reason::new(RepoErrorKind::Denied, text);
    }
    let text = match target.schema() {
        Some(_) => format!("there is no table {target}"),
        None => format!("there is no table {target} in the search path"),
    };
    Reason::new(RepoErrorKind::SchemaMissing, text)
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

/// An error with a text of our own and no cause.
pub(crate) fn text(text: impl Into<String>) -> Box<dyn StdError + Send + Sync> {
    text.into().into()
}

/// The pool gave no connection. Nothing was executed.
pub(crate) fn no_connection(subject: &Subject, error: PoolError) -> RepoError {
    use deadpool::managed::TimeoutType;
    let kind = match error {
        PoolError::Backend(ManagerError::ConnectionError(diesel::ConnectionError::CouldntSetupConfiguration(
            DieselError::QueryBuilderError(boxed),
        ))) => match boxed.downcast::<ConnectFailure>() {
            Ok(failure) => return failure.error(subject),
            Err(other) => return subject.error(RepoErrorKind::Other).with_source(other).never_executed(),
        },
        PoolError::Timeout(TimeoutType::Wait) => RepoErrorKind::Timeout,
        PoolError::NoRuntimeSpecified => RepoErrorKind::Config,
        _ => RepoErrorKind::Unavailable,
    };
    subject.error(kind).with_source(error).never_executed()
}

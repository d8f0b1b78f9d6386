//! From a failure of the driver to a [`RepoError`] that says what to do.
//!
//! Diesel keeps the SQLSTATE of a few errors only, and texts are localised by the server. So a failed statement is
//! explained by asking the server, on the same connection: that it answers is also the proof that the statement was
//! rolled back, since an error that leaves the session alive ends its autocommit transaction.

use diesel::result::{DatabaseErrorKind, Error as DieselError, QueryResult};
use lease_core::RepoErrorKind;
use lease_diesel::{Reason, Subject, Verdict};

use crate::engine::Session;
use crate::schema;
use crate::sql;
use crate::target::Target;

/// Finds out what a failed statement means. The connection is good afterwards unless
/// the verdict is `Gone`, or an error that says that the statement may have been executed.
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

/// Looks for what is wrong with the server, the table or our grants.
pub(crate) async fn reason(session: &mut Session<'_>, subject: &Subject) -> Result<Option<Reason>, DieselError> {
    let grants = if subject.deletes() {
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

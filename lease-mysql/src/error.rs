//! From a failure of the driver to a [`RepoError`] that says what to do.
//!
//! Diesel drops the server's error number, and texts are localised. So a failed statement is explained by asking the server
//! for it, on the same connection: that it answers is also the proof that the statement was rolled back, since an error
//! that leaves the session alive ends its transaction.

use diesel::result::{DatabaseErrorKind, Error as DieselError, QueryResult};
use diesel_async::SimpleAsyncConnection;
use lease_core::RepoErrorKind;
use lease_diesel::{Reason, Subject, Verdict};

use crate::code::{Meaning, of_statement};
use crate::engine::{Session, roll_back};
use crate::sql;
use crate::table::Table;
use crate::value::lossy;

/// Finds out what a failed statement means. The connection is good afterwards unless
/// the verdict is `Gone`, or an error that says that the statement may have been executed.
pub(crate) async fn explain(session: &mut Session<'_>, subject: &Subject, error: DieselError) -> Verdict {
    match &error {
        DieselError::DatabaseError(..) => {}
        // An answer of another type, or a null where there is none: the statement was executed, and the table is why.
        DieselError::DeserializationError(_) => {
            return Verdict::Final(match problems(session).await {
                Ok(Some(reason)) => reason.error(subject, Some(error)),
                _ => subject.error(RepoErrorKind::Other).with_source(error),
            });
        }
        _ => return Verdict::Final(subject.error(RepoErrorKind::Other).with_source(error)),
    }
    let meaning = match number(session, &error).await {
        Ok(code) => code.map_or(Meaning::Unknown, of_statement),
        Err(_) => return Verdict::Gone(subject.error(RepoErrorKind::Unavailable).with_source(error)),
    };
    let refused = |kind, error| subject.error(kind).with_source(error).never_executed();
    match meaning {
        Meaning::Conflict => Verdict::Conflict(refused(RepoErrorKind::Conflict, error)),
        // A node of Galera may have sent the change to the others before it found that it is none of them any more.
        Meaning::Kind(RepoErrorKind::Unavailable) => {
            Verdict::Final(subject.error(RepoErrorKind::Unavailable).with_source(error))
        }
        Meaning::Kind(kind) => Verdict::Final(refused(kind, error)),
        Meaning::Table => Verdict::Final(match problems(session).await {
            Ok(Some(reason)) => reason.error(subject, Some(error)).never_executed(),
            _ => refused(RepoErrorKind::SchemaMismatch, error),
        }),
        Meaning::Unknown => Verdict::Unexplained(refused(RepoErrorKind::Other, error)),
    }
}

/// The driver has no way to send text and read rows, and neither this nor `SHOW ERRORS` can be prepared on MySQL. So what the
/// server says goes into variables, from where it can be read.
///
/// The error is one of several conditions. MySQL has warnings before it, and MariaDB notes after it.
const NOTE_CONDITIONS: &str = "GET DIAGNOSTICS @lease_n = NUMBER; \
     GET DIAGNOSTICS CONDITION 1 @lease_e1 = MYSQL_ERRNO, @lease_m1 = MESSAGE_TEXT; \
     GET DIAGNOSTICS CONDITION @lease_n @lease_e2 = MYSQL_ERRNO, @lease_m2 = MESSAGE_TEXT";
const FORGET_CONDITIONS: &str =
    "SET @lease_n = NULL, @lease_e1 = NULL, @lease_m1 = NULL, @lease_e2 = NULL, @lease_m2 = NULL";

/// The server's number of an error that was just answered with, and the end of what it left open. An error if the session
/// is gone.
pub(crate) async fn number(session: &mut Session<'_>, error: &DieselError) -> QueryResult<Option<i64>> {
    let code = match session.connection.batch_execute(NOTE_CONDITIONS).await {
        Ok(()) => {
            let [first, last] = conditions(session).await?;
            Some(if is_about(error, &last.text) {
                last.number
            } else {
                first.number
            })
        }
        Err(refusal) if is_about_galera(&refusal) => Some(NOT_READY),
        // The server keeps no conditions, `max_error_count = 0`.
        Err(_) => None,
    };
    roll_back(session).await?;
    session.connection.batch_execute(FORGET_CONDITIONS).await?;
    Ok(code.or(match error {
        DieselError::DatabaseError(DatabaseErrorKind::ReadOnlyTransaction, _) => Some(1792),
        DieselError::DatabaseError(DatabaseErrorKind::NotNullViolation, _) => Some(1048),
        _ => None,
    }))
}

/// A node of Galera that is not part of its cluster.
const NOT_READY: i64 = 1047;

/// Whether that is it, which refuses to say any number as well. Its text is the same in all languages, unlike others.
fn is_about_galera(error: &DieselError) -> bool {
    matches!(error, DieselError::DatabaseError(_, said) if said.message().starts_with("WSREP"))
}

fn is_about(error: &DieselError, text: &str) -> bool {
    matches!(error, DieselError::DatabaseError(_, said) if said.message() == text)
}

struct Condition {
    number: i64,
    text: String,
}

/// The first and the last of the conditions that were noted.
async fn conditions(session: &mut Session<'_>) -> QueryResult<[Condition; 2]> {
    type Answer = (i64, Vec<u8>, i64, Vec<u8>);
    let (first, first_text, last, last_text): Answer = sql::only(session.rows(sql::Conditions, &[]).await?)?;
    let condition = |number, text: Vec<u8>| Condition {
        number,
        text: lossy(&text),
    };
    Ok([condition(first, first_text), condition(last, last_text)])
}

/// Whether a statement failed because its row was there already.
pub(crate) fn is_duplicate(error: &DieselError) -> bool {
    matches!(error, DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, _))
}

/// What is wrong with the table, in one text; `None` when it is fit or missing.
pub(crate) async fn problems(session: &mut Session<'_>) -> QueryResult<Option<Reason>> {
    let problems = Table::look(session).await?.problems();
    Ok((!problems.is_empty()).then(|| Reason::new(RepoErrorKind::SchemaMismatch, problems.join("; "))))
}

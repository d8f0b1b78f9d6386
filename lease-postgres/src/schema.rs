//! The table: [`migrate`](PostgresRepo::migrate) makes or completes it, [`check_schema`](PostgresRepo::check_schema)
//! says what is wrong with it.

use std::time::Duration;

use diesel::result::{DatabaseErrorKind, Error as DieselError, QueryResult};
use diesel::sql_types::{Bool, Nullable};
use diesel_async::SimpleAsyncConnection;
use lease_core::{Operation, RepoError, RepoErrorKind};
use lease_diesel::{Failure, Reason, Subject, Task, pause};

use crate::PostgresRepo;
use crate::engine::{Postgres, Session};
use crate::error::reason;
use crate::sql::{Value::Int, Value::Text, only, statement};
use crate::table::Table;

/// The statement by which [`migrate`](PostgresRepo::migrate) creates the table.
pub const SCHEMA: &str = include_str!("schema.sql");

/// How long a check may take.
const CHECK_LIMIT: Duration = Duration::from_secs(10);
/// How often a migration asks for the table's lock, in about a minute.
const TRIES: u32 = 120;
/// The longest pause between two of these, in which renewals pass.
const PAUSE: Duration = Duration::from_millis(500);
/// What bounds a migration whatever happens.
const MIGRATE_LIMIT: Duration = Duration::from_secs(120);

/// Opens a try. A renewal queues behind our wait for the table's lock, so that is short against any ttl.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = 100";
/// One migration at a time in a database; the others look again later. The number is arbitrary.
const ADVISORY_KEY: i64 = 0x6c65_6173_6500;

statement! {
    /// Whether this transaction is the one that migrates: key.
    TryAdvisoryLock -> (Bool):
    "SELECT pg_try_advisory_xact_lock($1)",
}

statement! {
    /// Whether the session is read-only, has a schema to create in, may create there, and owns the table: schema, empty
    /// for the first of the search path.
    MayChange -> (Bool, Bool, Nullable<Bool>, Nullable<Bool>):
    "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool, n.oid IS NOT NULL, ",
    "has_schema_privilege(n.oid, 'CREATE'), ",
    "(SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = to_regclass('task_leases')) ",
    "FROM (SELECT 1) one LEFT JOIN pg_namespace n ON n.nspname = COALESCE(NULLIF($1, ''), current_schema()::text)",
}

impl PostgresRepo {
    /// Creates the table `task_leases`, or adds to a table made by the Go package the columns that it lacks.
    ///
    /// It only looks first, and changes nothing when nothing is missing. Many pods may run it at once, and while
    /// leases are renewed: it waits for the table's lock for a tenth of a second at a time, with pauses in between.
    ///
    /// # Errors
    /// `Conflict` when other transactions held the table for about a minute, `Denied` when the role may not create or
    /// alter the table, `SchemaMismatch` with what is wrong with a table beyond missing columns, and those of
    /// [`connect`](Self::connect).
    ///
    /// # Cancelling
    /// Dropping the future rolls back, unless the commit is already under way. It can simply be called again.
    pub async fn migrate(&self) -> Result<(), RepoError> {
        self.source.run_alone(&self.target, Migrating, MIGRATE_LIMIT).await
    }

    /// Checks that the table is as the statements need it. It reads the catalog and needs no right to change it.
    ///
    /// What costs only speed, such as an index on `expires_at`, is a warning in the log.
    ///
    /// # Errors
    /// `SchemaMissing` without a table; `SchemaMismatch` with everything that is wrong in one message; `Denied` with
    /// the grants that are missing; and those of [`connect`](Self::connect).
    ///
    /// # Cancelling
    /// It changes nothing.
    pub async fn check_schema(&self) -> Result<(), RepoError> {
        self.source
            .run_alone(
                &self.target,
                Checking {
                    delete_on_release: self.delete_on_release,
                },
                CHECK_LIMIT,
            )
            .await
    }
}

/// What is wrong with the table, in one text; `None` when it is fit or missing.
pub(crate) async fn problems(session: &mut Session<'_>) -> QueryResult<Option<String>> {
    let problems = Table::look(session).await?.problems();
    Ok((!problems.is_empty()).then(|| problems.join("; ")))
}

struct Checking {
    delete_on_release: bool,
}

impl Task<Postgres> for Checking {
    type Answer = ();

    fn subject(&self) -> Subject {
        Subject::new(Operation::CheckSchema).deleting(self.delete_on_release)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<(), Failure> {
        for warning in Table::look(session).await?.slow() {
            tracing::warn!(target: "lease", "{}: {warning}", session.target);
        }
        match reason(session, &self.subject()).await? {
            Some(reason) => Err(reason.error(&self.subject(), None).into()),
            None => Ok(()),
        }
    }
}

struct Migrating;

impl Task<Postgres> for Migrating {
    type Answer = ();

    fn subject(&self) -> Subject {
        Subject::new(Operation::Migrate)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<(), Failure> {
        let mut refusal = None;
        for _ in 0..TRIES {
            let table = Table::look(session).await?;
            if missing(&table).is_none() {
                return match problems(session).await? {
                    Some(text) => Err(Reason::new(RepoErrorKind::SchemaMismatch, text)
                        .error(&self.subject(), None)
                        .into()),
                    None => Ok(()),
                };
            }
            match change(session).await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) if is_alive(&error) => {
                    session.connection.batch_execute("ROLLBACK").await?;
                    if let Some(reason) = forbidden(session, table.exists()).await? {
                        return Err(reason.error(&self.subject(), Some(error)).into());
                    }
                    refusal = Some(error);
                }
                Err(error) => return Err(error.into()),
            }
            pause(PAUSE).await;
        }
        let text = format!("in {TRIES} tries, other transactions always held the table or were migrating it");
        Err(Reason::new(RepoErrorKind::Conflict, text)
            .error(&self.subject(), refusal)
            .into())
    }
}

/// One try, in a transaction. `false` when another pod is at it.
async fn change(session: &mut Session<'_>) -> QueryResult<bool> {
    session.connection.batch_execute(BEGIN).await?;
    let (ours,): (bool,) = only(session.rows(TryAdvisoryLock, &[Int(ADVISORY_KEY)]).await?)?;
    if !ours {
        session.connection.batch_execute("ROLLBACK").await?;
        return Ok(false);
    }
    // Another pod may have done it since we looked.
    let ddl = missing(&Table::look(session).await?).unwrap_or_default();
    let ddl = session.target.rewrite(&ddl).unwrap_or(ddl);
    session.connection.batch_execute(&format!("{ddl}; COMMIT")).await?;
    Ok(true)
}

/// The statements that make the table complete; `None` when they have nothing to do.
///
/// The default of `token` is a constant while the column is added, so that the rows need not be rewritten under the
/// lock, and the clock from then on.
fn missing(table: &Table) -> Option<String> {
    if !table.exists() {
        return Some(SCHEMA.to_owned());
    }
    let clock = table.clock_us();
    let columns = [
        (
            "token",
            format!(
                "ALTER TABLE task_leases ADD COLUMN token bigint NOT NULL DEFAULT {clock}, \
                 ALTER COLUMN token SET DEFAULT ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"
            ),
        ),
        (
            "released_at",
            "ALTER TABLE task_leases ADD COLUMN released_at timestamptz".to_owned(),
        ),
        (
            "note",
            "ALTER TABLE task_leases ADD COLUMN note varchar(255)".to_owned(),
        ),
    ];
    let ddl: Vec<_> = columns
        .into_iter()
        .filter(|(column, _)| !table.has(column))
        .map(|(_, ddl)| ddl)
        .collect();
    (!ddl.is_empty()).then(|| ddl.join("; "))
}

/// Why the role could never make the change, however long it waits.
async fn forbidden(session: &mut Session<'_>, exists: bool) -> QueryResult<Option<Reason>> {
    let schema = session.target.schema().unwrap_or_default().to_owned();
    let (read_only, has_schema, may_create, owns): (bool, bool, Option<bool>, Option<bool>) =
        only(session.rows(MayChange, &[Text(&schema)]).await?)?;
    let denied = |text: &str| Some(Reason::new(RepoErrorKind::Denied, text));
    Ok(if read_only {
        Some(Reason::new(RepoErrorKind::ReadOnly, "the session is read-only"))
    } else if exists && owns == Some(false) {
        denied(&format!(
            "only the owner of the table {} may add columns to it",
            session.target
        ))
    } else if !exists && !has_schema {
        denied(&match session.target.schema() {
            Some(schema) => format!("there is no schema {schema} to create the table in"),
            None => "the search path has no schema to create the table in".to_owned(),
        })
    } else if !exists && may_create == Some(false) {
        denied(&match session.target.schema() {
            Some(schema) => format!("the role may not create a table in the schema {schema}"),
            None => "the role may not create a table in the first schema of the search path".to_owned(),
        })
    } else {
        None
    })
}

/// Whether the server answered, so that the session can go on after a rollback.
fn is_alive(error: &DieselError) -> bool {
    use DatabaseErrorKind::{ClosedConnection, UnableToSendCommand};
    matches!(error, DieselError::DatabaseError(kind, _) if !matches!(kind, UnableToSendCommand | ClosedConnection))
}

#[cfg(test)]
mod tests {
    use super::SCHEMA;

    /// A table once made stays as it is, so this text changes only together with what `migrate` adds to older ones.
    #[test]
    fn the_table_is_as_reviewed() {
        assert_eq!(
            SCHEMA.split_whitespace().collect::<Vec<_>>().join(" "),
            "CREATE TABLE IF NOT EXISTS task_leases ( \
             name varchar(128) COLLATE \"C\" PRIMARY KEY, \
             holder varchar(128) COLLATE \"C\" NOT NULL, \
             token bigint NOT NULL DEFAULT ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint), \
             acquired_at timestamptz NOT NULL, \
             expires_at timestamptz NOT NULL, \
             released_at timestamptz, \
             note varchar(255) \
             ) WITH (fillfactor = 50)"
        );
    }

    #[test]
    fn the_docs_show_the_table_as_it_is() {
        assert!(include_str!("docs.md").contains(SCHEMA));
    }
}

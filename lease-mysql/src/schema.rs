//! The table: [`migrate`](MysqlRepo::migrate) makes or completes it, [`check_schema`](MysqlRepo::check_schema) says what is
//! wrong with it.

use std::time::Duration;

use diesel::result::{Error as DieselError, QueryResult};
use diesel_async::SimpleAsyncConnection;
use lease_core::{Operation, RepoError, RepoErrorKind};
use lease_diesel::{Failure, Reason, Subject, Task, pause};

use crate::MysqlRepo;
use crate::code::{Meaning, of_statement};
use crate::engine::{Mysql, Session};
use crate::error::{number, problems};
use crate::sql::{only, statement};
use crate::table::Table;

/// The statement by which [`migrate`](MysqlRepo::migrate) creates the table.
pub const SCHEMA: &str = include_str!("schema.sql");

/// How long a check may take.
const CHECK_LIMIT: Duration = Duration::from_secs(10);
/// How often a migration asks for the table's lock, in about a minute.
const TRIES: u32 = 45;
/// The longest pause between two of these, in which renewals pass.
const PAUSE: Duration = Duration::from_millis(500);
/// What bounds a migration whatever happens.
const MIGRATE_LIMIT: Duration = Duration::from_secs(120);

/// How long a change may wait for the table, and all renewals behind it: a second is the least that MySQL knows.
const IMPATIENT: &str = "SET SESSION lock_wait_timeout = 1";
/// MariaDB needs no wait at all, and has settings for one statement.
const MORE_IMPATIENT: &str = "/*M!100300 SET STATEMENT lock_wait_timeout = 0, max_statement_time = 0 FOR */";

statement! {
    /// What a session of somebody else's waits for a table, to be put back.
    Patience -> (diesel::sql_types::BigInt):
    "SELECT CAST(@@session.lock_wait_timeout AS SIGNED)",
}

impl MysqlRepo {
    /// Creates the table `task_leases`, or brings a table made by the Go package into the form that is needed: the columns that
    /// it lacks are added, and its names become bytes, so that they are compared byte for byte.
    ///
    /// It only looks first, and changes nothing when nothing is missing. Many pods may run it at once. A table that is in use is
    /// asked for again and again, for about a minute; on MySQL renewals wait for up to a second each time, the least it knows,
    /// so that leases with a ttl below three seconds may be lost.
    ///
    /// # Errors
    /// `Conflict` when other transactions held the table for about a minute, `Denied` when the user may not create or
    /// alter the table, `SchemaMismatch` with what is wrong with a table beyond that, and those of
    /// [`connect`](Self::connect).
    ///
    /// # Cancelling
    /// A change that is under way is made, or not. It can simply be called again.
    pub async fn migrate(&self) -> Result<(), RepoError> {
        self.source.run_alone(&self.target, Migrating, MIGRATE_LIMIT).await
    }

    /// Checks that the table is as the statements need it. It reads the catalog and needs no right to change it.
    ///
    /// What costs only speed, such as an index on `expires_at`, is a warning in the log, and so is a server whose sessions
    /// begin in another zone than UTC where pods of the Go package may use the table.
    ///
    /// # Errors
    /// `SchemaMissing` without a table, or without any right to it; `SchemaMismatch` with everything that is wrong in one
    /// message; and those of [`connect`](Self::connect).
    ///
    /// # Cancelling
    /// It changes nothing.
    pub async fn check_schema(&self) -> Result<(), RepoError> {
        self.source.run_alone(&self.target, Checking, CHECK_LIMIT).await
    }
}

struct Checking;

impl Task<Mysql> for Checking {
    type Answer = ();

    fn subject(&self) -> Subject {
        Subject::new(Operation::CheckSchema)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<(), Failure> {
        let table = Table::look(session).await?;
        for warning in table.warnings() {
            tracing::warn!(target: "lease", "{}: {warning}", session.target);
        }
        let reason = if table.exists() {
            problems(session).await?
        } else {
            let text = format!("there is no table {}, or no right to see it", session.target);
            Some(Reason::new(RepoErrorKind::SchemaMissing, text))
        };
        match reason {
            Some(reason) => Err(reason.error(&self.subject(), None).never_executed().into()),
            None => Ok(()),
        }
    }
}

struct Migrating;

impl Task<Mysql> for Migrating {
    type Answer = ();

    fn subject(&self) -> Subject {
        Subject::new(Operation::Migrate)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<(), Failure> {
        let subject = self.subject();
        let mut refusal = None;
        for _ in 0..TRIES {
            let Some(ddl) = missing(&Table::look(session).await?) else {
                return match problems(session).await? {
                    Some(reason) => Err(reason.error(&subject, None).into()),
                    None => Ok(()),
                };
            };
            match change(session, &ddl).await? {
                None => continue,
                Some((error, Meaning::Kind(kind))) if kind != RepoErrorKind::SchemaMissing => {
                    return Err(subject.error(kind).with_source(error).into());
                }
                // Another transaction holds the table, or another pod was faster.
                Some((error, _)) => refusal = Some(error),
            }
            pause(PAUSE).await;
        }
        let text = format!("in {TRIES} tries, other transactions always held the table or were migrating it");
        let reason = Reason::new(RepoErrorKind::Conflict, text);
        Err(reason.error(&subject, refusal).into())
    }
}

/// One try. Answers why it failed. The session's patience is left as it was found.
async fn change(session: &mut Session<'_>, ddl: &str) -> QueryResult<Option<(DieselError, Meaning)>> {
    let (patience,): (i64,) = only(session.rows(Patience, &[]).await?)?;
    let ddl = session.target.rewrite(ddl).unwrap_or_else(|| ddl.to_owned());
    session.connection.batch_execute(IMPATIENT).await?;
    let changed = session
        .connection
        .batch_execute(&format!("{MORE_IMPATIENT} {ddl}"))
        .await;
    let refusal = match changed {
        Ok(()) => None,
        Err(error) => {
            let meaning = number(session, &error).await?.map_or(Meaning::Unknown, of_statement);
            Some((error, meaning))
        }
    };
    let restore = format!("SET SESSION lock_wait_timeout = {patience}");
    session.connection.batch_execute(&restore).await?;
    Ok(refusal)
}

/// The statement that makes the table complete; `None` when it has nothing to do.
fn missing(table: &Table) -> Option<String> {
    if !table.exists() {
        return Some(SCHEMA.to_owned());
    }
    let changes = [
        (table.is_text("name"), "MODIFY COLUMN name VARBINARY(128) NOT NULL"),
        (table.is_text("holder"), "MODIFY COLUMN holder VARBINARY(128) NOT NULL"),
        (
            !table.has("token"),
            "ADD COLUMN token BIGINT NOT NULL DEFAULT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))",
        ),
        (!table.has("released_at"), "ADD COLUMN released_at DATETIME(6) NULL"),
        (!table.has("note"), "ADD COLUMN note VARBINARY(255) NULL"),
    ];
    let changes: Vec<_> = changes
        .into_iter()
        .filter_map(|(needed, change)| needed.then_some(change))
        .collect();
    (!changes.is_empty()).then(|| format!("ALTER TABLE task_leases {}", changes.join(", ")))
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
             name VARBINARY(128) NOT NULL PRIMARY KEY, \
             holder VARBINARY(128) NOT NULL, \
             token BIGINT NOT NULL DEFAULT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), \
             acquired_at DATETIME(6) NOT NULL, \
             expires_at DATETIME(6) NOT NULL, \
             released_at DATETIME(6) NULL, \
             note VARBINARY(255) NULL \
             ) ENGINE = InnoDB"
        );
    }

    #[test]
    fn the_docs_show_the_table_as_it_is() {
        assert!(include_str!("docs.md").contains(SCHEMA));
    }
}

//! The table: [`migrate`](SqliteRepo::migrate) makes it, [`check_schema`](SqliteRepo::check_schema) says what is wrong with
//! it.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::result::QueryResult;
use diesel::sql_types::{BigInt, Bool, Text};
use diesel::{QueryableByName, RunQueryDsl, SqliteConnection};
use lease_core::{Operation, RepoError, RepoErrorKind};

use crate::SqliteRepo;
use crate::error::Subject;

/// The statement by which [`migrate`](SqliteRepo::migrate) creates the table.
pub const SCHEMA: &str = include_str!("schema.sql");

const LIMIT: Duration = Duration::from_secs(10);

/// Name, type, and whether it is NOT NULL.
const NEEDED: [(&str, &str, bool); 7] = [
    ("name", "TEXT", true),
    ("holder", "TEXT", true),
    ("token", "INTEGER", true),
    ("acquired_at", "INTEGER", true),
    ("expires_at", "INTEGER", true),
    ("released_at", "INTEGER", false),
    ("note", "TEXT", false),
];

impl SqliteRepo {
    /// Creates the table `task_leases` if there is none, and checks it otherwise. Many processes may run it at once.
    ///
    /// # Errors
    /// `SchemaMismatch` with all that is wrong with a table that is there, `ReadOnly`, and `Conflict` when other processes
    /// had the file locked for ten seconds.
    ///
    /// # Cancelling
    /// The table is made, or not. It can simply be called again.
    pub async fn migrate(&self) -> Result<(), RepoError> {
        let subject = Subject::new(Operation::Migrate);
        let migrating = |connection: &mut SqliteConnection| {
            if columns(connection)?.is_empty() {
                connection.batch_execute(SCHEMA)?;
            }
            problems(connection)
        };
        let problems = self.store.run(subject.clone(), LIMIT, migrating).await?;
        verdict(&subject, problems)
    }

    /// Checks that the table is as the statements need it. It only reads.
    ///
    /// # Errors
    /// `SchemaMissing` without a table, `SchemaMismatch` with everything that is wrong in one message.
    ///
    /// # Cancelling
    /// It changes nothing.
    pub async fn check_schema(&self) -> Result<(), RepoError> {
        let subject = Subject::new(Operation::CheckSchema);
        let checking = |connection: &mut SqliteConnection| {
            let exists = !columns(connection)?.is_empty();
            Ok((exists, problems(connection)?))
        };
        let (exists, problems) = self.store.run(subject.clone(), LIMIT, checking).await?;
        if !exists {
            let text = "there is no table task_leases";
            let error = subject.error(RepoErrorKind::SchemaMissing);
            return Err(error.with_source(text).never_executed());
        }
        verdict(&subject, problems)
    }
}

fn verdict(subject: &Subject, problems: Vec<String>) -> Result<(), RepoError> {
    if problems.is_empty() {
        return Ok(());
    }
    let error = subject.error(RepoErrorKind::SchemaMismatch);
    Err(error.with_source(problems.join("; ")).never_executed())
}

/// Takes the file's write lock and gives it back, so that a file that can't be written to is known at once.
pub(crate) fn is_writable(connection: &mut SqliteConnection) -> QueryResult<()> {
    connection.batch_execute("BEGIN IMMEDIATE; PRAGMA user_version; ROLLBACK")
}

#[derive(QueryableByName)]
struct Column {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text, column_name = "type")]
    type_name: String,
    #[diesel(sql_type = Bool)]
    not_null: bool,
    #[diesel(sql_type = Bool)]
    has_default: bool,
}

fn columns(connection: &mut SqliteConnection) -> QueryResult<Vec<Column>> {
    let text = "SELECT name, upper(type) AS type, \"notnull\" AS not_null, dflt_value IS NOT NULL AS has_default \
                FROM pragma_table_info('task_leases')";
    diesel::sql_query(text).load(connection)
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// How many unique indexes there are on the name alone, compared byte for byte.
fn keys(connection: &mut SqliteConnection) -> QueryResult<i64> {
    let text = "SELECT count(*) AS count FROM pragma_index_list('task_leases') i WHERE i.\"unique\" AND NOT i.partial \
                AND (SELECT group_concat(x.name || ' ' || x.coll) FROM pragma_index_xinfo(i.name) x WHERE x.key) = 'name BINARY'";
    let counts: Vec<Count> = diesel::sql_query(text).load(connection)?;
    Ok(counts.iter().map(|row| row.count).sum())
}

/// What makes the table unfit. Empty for a missing table.
fn problems(connection: &mut SqliteConnection) -> QueryResult<Vec<String>> {
    let columns = columns(connection)?;
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let mut problems = Vec::new();
    if keys(connection)? == 0 {
        problems.push(
            "no primary key or unique index on name alone, compared byte for byte, so several could hold one lease"
                .to_owned(),
        );
    }
    for (name, type_name, not_null) in NEEDED {
        let Some(column) = columns.iter().find(|column| column.name == name) else {
            problems.push(format!("column {name} is missing"));
            continue;
        };
        if column.type_name != type_name {
            problems.push(format!("column {name} is {}, not {type_name}", column.type_name));
        }
        if column.not_null != not_null {
            let is = if not_null { "may be null" } else { "is NOT NULL" };
            problems.push(format!("column {name} {is}"));
        }
    }
    let in_the_way = columns.iter().filter(|column| {
        column.not_null && !column.has_default && NEEDED.iter().all(|(name, ..)| *name != column.name)
    });
    problems.extend(in_the_way.map(|column| {
        let name = &column.name;
        format!("column {name} is not ours, is NOT NULL and has no default")
    }));
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::SCHEMA;

    #[test]
    fn the_docs_show_the_table_as_it_is() {
        assert!(include_str!("docs.md").contains(SCHEMA));
    }
}

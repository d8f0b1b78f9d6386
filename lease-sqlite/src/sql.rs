//! The statements: fixed texts, prepared once per connection.
//!
//! `diesel::sql_query` is prepared anew at each use; a query fragment of a fixed text and a static id is kept by the
//! connection.
//!
//! Each that writes is one statement in autocommit: it takes the file's write lock first and reads the clock then, and SQLite
//! gives the same time however often one statement asks for it.

use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::{Error, QueryResult};
use diesel::sql_types::{BigInt, Nullable, Text};
use diesel::sqlite::Sqlite;
use diesel::{RunQueryDsl, SqliteConnection};

/// One fixed text. In it `$1`, `$2`.. stand for values; each may occur more than once.
pub(crate) trait Statement: 'static {
    /// The text.
    const TEXT: &'static str;
    /// The SQL types of the columns it answers with.
    type Row: 'static;
}

/// A value for a statement.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(String),
    Int(i64),
}

/// A statement with its values, ready to run.
pub(crate) struct Bound<'a, S> {
    values: &'a [Value],
    _statement: S,
}

impl<'a, S: Statement> Bound<'a, S> {
    pub(crate) fn new(statement: S, values: &'a [Value]) -> Self {
        Self {
            values,
            _statement: statement,
        }
    }
}

impl<S: Statement> QueryFragment<Sqlite> for Bound<'_, S> {
    /// Diesel numbers parameters by their place, so a value that occurs twice is bound twice.
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        let mut pieces = S::TEXT.split('$');
        out.push_sql(pieces.next().unwrap_or_default());
        for piece in pieces {
            let (number, text) = piece.split_at_checked(1).unwrap_or_default();
            let value = number
                .parse()
                .ok()
                .and_then(|n: usize| self.values.get(n.checked_sub(1)?));
            match value {
                Some(Value::Text(value)) => out.push_bind_param::<Text, str>(value)?,
                Some(Value::Int(value)) => out.push_bind_param::<BigInt, i64>(value)?,
                None => return Err(Error::QueryBuilderError(format!("no value for ${number}").into())),
            }
            out.push_sql(text);
        }
        Ok(())
    }
}

impl<S: Statement> Query for Bound<'_, S> {
    type SqlType = S::Row;
}

impl<S: Statement> QueryId for Bound<'_, S> {
    type QueryId = S;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<S: Statement> RunQueryDsl<SqliteConnection> for Bound<'_, S> {}

macro_rules! statement {
    ($(#[$doc:meta])* $name:ident -> ($($row:ty),*): $($text:expr),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name;

        impl $crate::sql::Statement for $name {
            const TEXT: &'static str = concat!($($text),+);
            type Row = ($($row,)*);
        }
    };
}

pub(crate) use statement;

/// The database's clock in microseconds since 1970, as tokens count. It ticks in milliseconds.
macro_rules! now {
    () => {
        "(CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000)"
    };
}

pub(crate) use now;

statement! {
    /// Who has a lease, without a lock: name.
    Peek -> (Text, BigInt, Nullable<BigInt>, BigInt):
    "SELECT holder, expires_at, released_at, ", now!(), " FROM task_leases WHERE name = $1",
}

statement! {
    /// Law L1 and L2: name, holder, ttl. No row when somebody else has it. A live row of this very holder is a retry, which
    /// extends and keeps the rest.
    Acquire -> (BigInt):
    "INSERT INTO task_leases AS t (name, holder, token, acquired_at, expires_at, released_at, note) ",
    "VALUES ($1, $2, max(", now!(), ", 1), ", now!(), ", ", now!(), " + $3, NULL, NULL) ",
    "ON CONFLICT (name) DO UPDATE SET holder = $2, ",
    "token = CASE WHEN t.expires_at <= ", now!(), " THEN max(t.token + 1, ", now!(), ") ELSE t.token END, ",
    "acquired_at = CASE WHEN t.expires_at <= ", now!(), " THEN ", now!(), " ELSE t.acquired_at END, ",
    "expires_at = CASE WHEN t.expires_at <= ", now!(), " THEN ", now!(), " + $3 ELSE max(t.expires_at, ", now!(), " + $3) END, ",
    "released_at = NULL, note = CASE WHEN t.expires_at <= ", now!(), " THEN NULL ELSE t.note END ",
    "WHERE t.expires_at <= ", now!(), " OR (t.holder = $2 AND t.released_at IS NULL) RETURNING token",
}

statement! {
    /// Law L3: name, holder, ttl.
    Renew -> (BigInt):
    "UPDATE task_leases SET expires_at = max(expires_at, ", now!(), " + $3) ",
    "WHERE name = $1 AND holder = $2 AND released_at IS NULL AND expires_at > ", now!(),
}

statement! {
    /// Law L4: name, holder, minimum.
    Release -> (BigInt):
    "UPDATE task_leases SET released_at = ", now!(), ", expires_at = CASE WHEN expires_at > ", now!(), " ",
    "THEN max(", now!(), ", acquired_at + $3) ELSE expires_at END ",
    "WHERE name = $1 AND holder = $2 AND released_at IS NULL",
}

/// The SQL types of a row as `Inspect` reads it.
pub(crate) type InspectRow = (
    Text,
    Text,
    BigInt,
    BigInt,
    BigInt,
    Nullable<BigInt>,
    Nullable<Text>,
    BigInt,
);

macro_rules! inspect_row {
    () => {
        concat!(
            "SELECT name, holder, token, acquired_at, expires_at, released_at, note, ",
            now!(),
            " FROM task_leases "
        )
    };
}

/// All rows, by name.
pub(crate) struct List;

impl Statement for List {
    const TEXT: &'static str = concat!(inspect_row!(), "ORDER BY name");
    type Row = InspectRow;
}

/// One row: name.
pub(crate) struct Get;

impl Statement for Get {
    const TEXT: &'static str = concat!(inspect_row!(), "WHERE name = $1");
    type Row = InspectRow;
}

statement! {
    /// `Inspect::evict`: name, holder `evict/{by}`, note.
    Evict -> (BigInt, BigInt):
    "UPDATE task_leases SET holder = $2, token = max(token + 1, ", now!(), "), acquired_at = ", now!(), ", ",
    "released_at = NULL, note = $3 WHERE name = $1 AND expires_at > ", now!(), " RETURNING expires_at, ", now!(),
}

statement! {
    /// `Inspect::evict_now`: name, holder `evict/{by}`, note.
    EvictNow -> (BigInt, BigInt):
    "UPDATE task_leases SET holder = $2, token = max(token + 1, ", now!(), "), acquired_at = ", now!(), ", ",
    "expires_at = ", now!(), ", released_at = NULL, note = $3 ",
    "WHERE name = $1 AND expires_at > ", now!(), " RETURNING expires_at, ", now!(),
}

/// From when on a pause may end: the displaced holder's expiry, which a pause that is replaced hands on.
macro_rules! pause_floor {
    () => {
        "CASE WHEN substr(t.holder, 1, 6) = 'pause/' AND t.released_at IS NULL THEN t.acquired_at ELSE t.expires_at END"
    };
}

statement! {
    /// `Inspect::pause`: name, holder `pause/{by}`, duration, note.
    Pause -> (BigInt):
    "INSERT INTO task_leases AS t (name, holder, token, acquired_at, expires_at, released_at, note) ",
    "VALUES ($1, $2, max(", now!(), ", 1), ", now!(), ", ", now!(), " + $3, NULL, $4) ",
    "ON CONFLICT (name) DO UPDATE SET holder = $2, token = max(t.token + 1, ", now!(), "), ",
    "acquired_at = max(", now!(), ", ", pause_floor!(), "), ",
    "expires_at = max(", now!(), " + $3, ", pause_floor!(), "), released_at = NULL, note = $4",
}

statement! {
    /// `Inspect::resume`: name.
    Resume -> (BigInt):
    "UPDATE task_leases SET released_at = ", now!(), ", expires_at = max(acquired_at, ", now!(), ") ",
    "WHERE name = $1 AND substr(holder, 1, 6) = 'pause/' AND released_at IS NULL AND expires_at > ", now!(),
}

statement! {
    /// `Inspect::purge`: age.
    Purge -> (BigInt):
    "DELETE FROM task_leases WHERE expires_at <= ", now!(), " - $1 AND token < ", now!(),
}

#[cfg(test)]
mod tests {
    use diesel::debug_query;

    use super::*;

    /// One text per statement, so that a change of any shows in a review as what it is.
    #[test]
    fn the_texts_are_as_reviewed() {
        let mut texts = String::new();
        macro_rules! add {
            ($($name:ident)*) => {$(
                texts += concat!("-- ", stringify!($name), "\n");
                texts += &$name::TEXT.replace(now!(), "NOW");
                texts += ";\n";
            )*};
        }
        add!(Peek Acquire Renew Release List Get Evict EvictNow Pause Resume Purge);
        texts += concat!("-- NOW stands for\n", now!(), ";\n");
        assert_eq!(texts, include_str!("../tests/statements.sql"), "{texts}");
    }

    #[test]
    fn a_value_used_twice_is_bound_twice() {
        let values = [Value::Text("job".into()), Value::Text("pod/1".into()), Value::Int(7)];
        let bound = Bound::new(Acquire, &values);
        let text = debug_query::<Sqlite, _>(&bound).to_string();
        assert!(
            text.ends_with(r#"-- binds: ["job", "pod/1", 7, "pod/1", 7, 7, "pod/1"]"#),
            "{text}"
        );
        assert!(bound.is_safe_to_cache_prepared(&Sqlite).unwrap());
    }

    #[test]
    fn a_missing_value_is_an_error() {
        let mut builder = diesel::sqlite::SqliteQueryBuilder::default();
        assert!(Bound::new(Renew, &[]).to_sql(&mut builder, &Sqlite).is_err());
    }
}

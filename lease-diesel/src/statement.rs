//! [`Statement`]: a fixed text, prepared once per connection.
//!
//! `diesel::sql_query` and the query builder's `UPDATE` are prepared anew at each use, which halves the throughput; a query
//! fragment of a fixed text and a static id is kept by the connection.

use std::marker::PhantomData;

use diesel::backend::Backend;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::{Error, QueryResult};

/// One fixed text about the table `task_leases`. In it `$1`, `$2`.. stand for values; each may occur more than once. A `$` before
/// anything but a digit is itself. Made by [`statement!`](crate::statement!).
pub trait Statement: Send + Sync + 'static {
    /// The text.
    const TEXT: &'static str;
    /// The SQL types of the columns it answers with.
    type Row: Send + 'static;
}

/// A value for a statement, of one of the types that a backend sends.
pub trait Parameter<DB: Backend>: Send + Sync {
    /// Binds it with `push_bind_param`.
    ///
    /// # Errors
    /// What that answers.
    fn bind<'b>(&'b self, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()>;
}

/// A statement with its values, ready to run.
///
/// `OWN_TEXT` says that the text is the statement's own. With any other the connection must not keep it under its type.
pub struct Bound<'a, S, V, const OWN_TEXT: bool> {
    /// What stands in the text's place, between one `$` of it and the next.
    pieces: Option<Vec<String>>,
    values: &'a [V],
    statement: PhantomData<S>,
}

impl<'a, S: Statement, V> Bound<'a, S, V, true> {
    /// The statement as it is.
    pub fn new(_: S, values: &'a [V]) -> Self {
        Self {
            pieces: None,
            values,
            statement: PhantomData,
        }
    }
}

impl<'a, S: Statement, V> Bound<'a, S, V, false> {
    /// The statement about a table with a name of its own: each piece of the text, which has been split at each `$`, with that name in it. The
    /// name itself may have one, and means no value by it.
    pub fn with_pieces(_: S, values: &'a [V], pieces: Vec<String>) -> Self {
        Self {
            pieces: Some(pieces),
            values,
            statement: PhantomData,
        }
    }
}

impl<S, V, const OWN_TEXT: bool> Bound<'_, S, V, OWN_TEXT> {
    fn walk<'b, DB: Backend>(
        &'b self,
        mut pieces: impl Iterator<Item = &'b str>,
        out: &mut AstPass<'_, 'b, DB>,
    ) -> QueryResult<()>
    where
        V: Parameter<DB>,
    {
        out.push_sql(pieces.next().unwrap_or_default());
        for piece in pieces {
            let Some(number) = piece.chars().next().and_then(|first| first.to_digit(10)) else {
                out.push_sql("$");
                out.push_sql(piece);
                continue;
            };
            let at = (number as usize).checked_sub(1);
            match at.and_then(|at| self.values.get(at)) {
                Some(value) => value.bind(out)?,
                None => return Err(Error::QueryBuilderError(format!("no value for ${number}").into())),
            }
            out.push_sql(&piece[1..]);
        }
        Ok(())
    }
}

impl<DB: Backend, S: Statement, V: Parameter<DB>, const OWN_TEXT: bool> QueryFragment<DB>
    for Bound<'_, S, V, OWN_TEXT>
{
    /// Diesel numbers parameters by their place, so a value that occurs twice is bound twice.
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        match &self.pieces {
            None => self.walk(S::TEXT.split('$'), &mut out),
            Some(pieces) => self.walk(pieces.iter().map(String::as_str), &mut out),
        }
    }
}

impl<S: Statement, V, const OWN_TEXT: bool> Query for Bound<'_, S, V, OWN_TEXT> {
    type SqlType = S::Row;
}

/// A text of its own is kept by its type; any other by itself, which costs a look at all of it.
impl<S: Statement, V, const OWN_TEXT: bool> QueryId for Bound<'_, S, V, OWN_TEXT> {
    type QueryId = S;
    const HAS_STATIC_QUERY_ID: bool = OWN_TEXT;
}

/// The first row of an answer that was read to its end, with `load`.
///
/// Not `get_result`, which leaves the rest unread: a commit that failed, such as by a serialization failure, may be reported
/// after the rows, so a row alone is no proof that anything happened; and what is left of an answer may be read as the next
/// one's.
pub fn first<T>(rows: Vec<T>) -> Option<T> {
    rows.into_iter().next()
}

/// The only row of a statement that always has one. See [`first`].
///
/// # Errors
/// `NotFound` without a row.
pub fn only<T>(rows: Vec<T>) -> QueryResult<T> {
    first(rows).ok_or(Error::NotFound)
}

/// Makes a [`Statement`]: its docs, its name, the SQL types that it answers with, and its text in pieces.
#[macro_export]
macro_rules! statement {
    ($(#[$doc:meta])* $name:ident -> ($($row:ty),*): $($text:expr),+ $(,)?) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl $crate::Statement for $name {
            const TEXT: &'static str = concat!($($text),+);
            type Row = ($($row,)*);
        }
    };
}

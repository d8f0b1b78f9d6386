//! [`Statement`]: a fixed text, prepared once per connection.
//!
//! `diesel::sql_query` and the query builder's `UPDATE` are prepared anew at each use, which halves the throughput; a query
//! fragment of a fixed text and a static id is kept by the connection.

use std::marker::PhantomData;

use diesel::backend::Backend;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::{Error, QueryResult};

const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// One fixed text about the table `task_leases`. In it `$1`, `$2`.. stand for values; each may occur more than once. A `$` before
/// anything but a digit is itself. Made by [`statement!`](crate::statement!).
pub trait Statement: Send + Sync + 'static {
    /// The text.
    const TEXT: &'static str;
    /// The text, split at each `$`. A search for them at each use would cost more than all else that is done with it.
    const PIECES: &'static [&'static str];
    /// The SQL types of the columns it answers with.
    type Row: Send + 'static;
}

/// A value for a statement, of one of the types that a backend sends.
pub trait Parameter<DB: Backend>: Send + Sync {
    /// Whether placeholders have numbers, so that a value that occurs twice is sent once.
    const NUMBERED: bool;

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
        // Diesel numbers values by the order in which they come: for each of the text's numbers the one that it got, 0 for none.
        let (mut numbers, mut last) = ([0; DIGITS.len()], 0);
        out.push_sql(pieces.next().unwrap_or_default());
        for piece in pieces {
            let Some(digit @ b'0'..=b'9') = piece.bytes().next() else {
                out.push_sql("$");
                out.push_sql(piece);
                continue;
            };
            let digit = usize::from(digit - b'0');
            let known = numbers[digit];
            if V::NUMBERED && known > 0 {
                out.push_sql("$");
                out.push_sql(DIGITS[known]);
            } else {
                let value = digit.checked_sub(1).and_then(|at| self.values.get(at));
                let no_value = || Error::QueryBuilderError(format!("no value for ${digit}").into());
                value.ok_or_else(no_value)?.bind(out)?;
                last += 1;
                numbers[digit] = last;
            }
            out.push_sql(&piece[1..]);
        }
        Ok(())
    }
}

impl<DB: Backend, S: Statement, V: Parameter<DB>, const OWN_TEXT: bool> QueryFragment<DB>
    for Bound<'_, S, V, OWN_TEXT>
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        match &self.pieces {
            None => self.walk(S::PIECES.iter().copied(), &mut out),
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

/// How many pieces a text has, split at each `$`.
#[must_use]
pub const fn pieces(text: &str) -> usize {
    let (mut count, mut at) = (1, 0);
    while at < text.len() {
        count += (text.as_bytes()[at] == b'$') as usize;
        at += 1;
    }
    count
}

/// A text split at each `$`, by the compiler.
///
/// # Panics
/// If it has more than `N` [`pieces`].
#[must_use]
pub const fn split<const N: usize>(text: &str) -> [&str; N] {
    let (mut split, mut piece, mut rest, mut at) = ([""; N], 0, text, 0);
    while at < rest.len() {
        if rest.as_bytes()[at] == b'$' {
            let (before, after) = rest.split_at(at);
            split[piece] = before;
            rest = after.split_at(1).1;
            piece += 1;
            at = 0;
        } else {
            at += 1;
        }
    }
    split[piece] = rest;
    split
}

/// Makes a [`Statement`]: its docs, its name, the SQL types that it answers with, and its text in parts.
#[macro_export]
macro_rules! statement {
    ($(#[$doc:meta])* $name:ident -> ($($row:ty),*): $($text:expr),+ $(,)?) => {
        $crate::statement! { $(#[$doc])* $name as ($($row,)*): $($text),+ }
    };
    ($(#[$doc:meta])* $name:ident as $row:ty: $($text:expr),+ $(,)?) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl $crate::Statement for $name {
            const TEXT: &'static str = concat!($($text),+);
            const PIECES: &'static [&'static str] = &$crate::split::<{ $crate::pieces(Self::TEXT) }>(Self::TEXT);
            type Row = $row;
        }
    };
}

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
    /// The text in pieces, which the compiler makes: to look for values at each use would cost more than all else that is done
    /// with it. A value follows wherever one stands.
    const EACH: &'static [Piece];
    /// The same, for placeholders with numbers: a value follows where it stands first, and then it has its number.
    const FIRST: &'static [Piece];
    /// The SQL types of the columns it answers with.
    type Row: Send + 'static;
}

/// A part of a statement's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: &'static str,
    /// Which value follows it, from 0 on. None at the end.
    pub value: Option<usize>,
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

/// The pieces of a statement, for the kind of placeholders that these values have.
pub(crate) const fn pieces_of<S: Statement, DB: Backend, V: Parameter<DB>>() -> &'static [Piece] {
    if V::NUMBERED { S::FIRST } else { S::EACH }
}

/// A statement with its values, ready to run.
///
/// `OWN_TEXT` says that the text is the statement's own. With any other the connection must not keep it under its type.
pub struct Bound<'a, S, V, const OWN_TEXT: bool> {
    /// What stands in place of the pieces' texts.
    texts: Option<Vec<String>>,
    values: &'a [V],
    statement: PhantomData<S>,
}

impl<'a, S: Statement, V> Bound<'a, S, V, true> {
    /// The statement as it is.
    pub fn new(_: S, values: &'a [V]) -> Self {
        Self {
            texts: None,
            values,
            statement: PhantomData,
        }
    }
}

impl<'a, S: Statement, V> Bound<'a, S, V, false> {
    /// The statement about a table with a name of its own: the text of each of its pieces with that name in it. The name itself may
    /// have a `$`, and means no value by it.
    pub(crate) fn with_texts(_: S, values: &'a [V], texts: Vec<String>) -> Self {
        Self {
            texts: Some(texts),
            values,
            statement: PhantomData,
        }
    }
}

impl<DB: Backend, S: Statement, V: Parameter<DB>, const OWN_TEXT: bool> QueryFragment<DB>
    for Bound<'_, S, V, OWN_TEXT>
{
    /// Diesel gives values their numbers in the order in which they come.
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let texts = self.texts.as_deref();
        for (at, piece) in pieces_of::<S, DB, V>().iter().enumerate() {
            let text = texts.and_then(|texts| texts.get(at));
            out.push_sql(text.map_or(piece.text, String::as_str));
            if let Some(number) = piece.value {
                let no_value = || Error::QueryBuilderError(format!("no value for ${}", number + 1).into());
                self.values.get(number).ok_or_else(no_value)?.bind(&mut out)?;
            }
        }
        Ok(())
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

/// Which value stands at a byte of a text, if one does.
const fn value_at(text: &[u8], at: usize) -> Option<usize> {
    if at + 1 >= text.len() || text[at] != b'$' || !text[at + 1].is_ascii_digit() {
        return None;
    }
    assert!(text[at + 1] != b'0', "values are $1 to $9");
    Some((text[at + 1] - b'1') as usize)
}

/// How many pieces a text has if it is split at each value, or at the first of each.
///
/// # Panics
/// If there is a `$0`.
#[must_use]
pub const fn pieces(text: &str, first: bool) -> usize {
    let (text, mut seen, mut count, mut at) = (text.as_bytes(), [false; 9], 1, 0);
    while at < text.len() {
        if let Some(value) = value_at(text, at) {
            count += !(first && seen[value]) as usize;
            seen[value] = true;
        }
        at += 1;
    }
    count
}

/// A text in which values have the numbers in whose order each comes first, as long as it is.
///
/// # Panics
/// If there is a `$0`.
#[must_use]
pub const fn numbered<const N: usize>(text: &str) -> [u8; N] {
    let (text, mut numbered, mut numbers, mut last, mut at) = (text.as_bytes(), [0; N], [0; 9], b'0', 0);
    while at < text.len() {
        numbered[at] = text[at];
        if let Some(value) = value_at(text, at) {
            if numbers[value] == 0 {
                last += 1;
                numbers[value] = last;
            }
            at += 1;
            numbered[at] = numbers[value];
        }
        at += 1;
    }
    numbered
}

/// A text's pieces, of which there are [`N`](pieces). With `numbered`, the same text as [`numbered`] has it, it is split where each
/// value stands first.
///
/// # Panics
/// If there are more, or a `$0`, or the numbered one is another text.
#[must_use]
pub const fn split<const N: usize>(text: &'static str, numbered: Option<&'static [u8]>) -> [Piece; N] {
    let shown = match numbered {
        None => text,
        Some(numbered) => match str::from_utf8(numbered) {
            Ok(numbered) => numbered,
            Err(_) => panic!("it is another text"),
        },
    };
    let none = Piece { text: "", value: None };
    let (mut split, mut seen, mut piece, mut begin, mut at) = ([none; N], [false; 9], 0, 0, 0);
    while at < text.len() {
        if let Some(value) = value_at(text.as_bytes(), at)
            && (numbered.is_none() || !seen[value])
        {
            split[piece].text = shown.split_at(at).0.split_at(begin).1;
            split[piece].value = Some(value);
            seen[value] = true;
            piece += 1;
            begin = at + "$1".len();
        }
        at += 1;
    }
    split[piece].text = shown.split_at(begin).1;
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
            const EACH: &'static [$crate::Piece] =
                &$crate::split::<{ $crate::pieces(Self::TEXT, false) }>(Self::TEXT, None);
            const FIRST: &'static [$crate::Piece] = {
                const TEXT: &str = <$name as $crate::Statement>::TEXT;
                const NUMBERED: &[u8] = &$crate::numbered::<{ TEXT.len() }>(TEXT);
                &$crate::split::<{ $crate::pieces(TEXT, true) }>(TEXT, Some(NUMBERED))
            };
            type Row = $row;
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    statement! {
        /// Numbers that do not come in their order, one of them twice, and a `$` that is itself.
        Odd -> (diesel::sql_types::Text): "SELECT '$a' || $3 || $1, $3 || '$'"
    }

    const fn piece(text: &'static str, value: usize) -> Piece {
        Piece {
            text,
            value: Some(value),
        }
    }

    #[test]
    fn a_text_is_split_at_each_value() {
        let end = Piece {
            text: " || '$'",
            value: None,
        };
        let pieces = [piece("SELECT '$a' || ", 2), piece(" || ", 0), piece(", ", 2), end];
        assert_eq!(Odd::EACH, pieces);
    }

    /// Values get their numbers in the order in which they are sent.
    #[test]
    fn a_text_with_numbers_is_split_where_each_value_comes_first() {
        let end = Piece {
            text: ", $1 || '$'",
            value: None,
        };
        assert_eq!(Odd::FIRST, [piece("SELECT '$a' || ", 2), piece(" || ", 0), end]);
    }
}

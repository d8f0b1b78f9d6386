//! The statements: fixed texts, prepared once per connection, the same for MySQL and MariaDB.
//!
//! `diesel::sql_query` and the query builder's `UPDATE` are prepared anew at each use; a query fragment of a fixed text and
//! a static id is kept by the connection.
//!
//! No answer hangs on how the server counts rows, "found" or "changed", which a client chooses when it connects: where a
//! count decides, the statement changes the row whenever it finds it. And no assignment of an `UPDATE` reads a column
//! that another one sets, since MySQL evaluates them from left to right and MariaDB, if told so, at once.

use diesel::mysql::Mysql;
use diesel::query_builder::AstPass;
use diesel::result::QueryResult;
use diesel::sql_types::{BigInt, Binary, Nullable};
use lease_diesel::Parameter;
pub(crate) use lease_diesel::{Statement, first, only, statement};

/// A value for a statement. Texts travel as bytes, as the columns keep them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    Int(i64),
}

impl Parameter<Mysql> for Value<'_> {
    const NUMBERED: bool = false;

    fn bind<'b>(&'b self, out: &mut AstPass<'_, 'b, Mysql>) -> QueryResult<()> {
        match self {
            Self::Text(value) => out.push_bind_param::<Binary, [u8]>(value.as_bytes()),
            Self::Int(value) => out.push_bind_param::<BigInt, i64>(value),
        }
    }
}

/// The database's clock in UTC, read when the row is there. `UTC_TIMESTAMP` stands still for as long as a statement runs,
/// so after a wait for a lock it is as old as the wait; `SYSDATE` goes on, but in the session's zone. So their difference in
/// that zone is added. What is a multiple of a quarter of an hour in it is the zone's doing, if its clocks were just changed.
///
/// Under `--sysdate-is-now` it is the time at which the statement began: an expiry then counts from before the wait.
macro_rules! now {
    () => {
        "(UTC_TIMESTAMP(6) + INTERVAL MOD(TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) + 86850000000, 900000000) \
         - 450000000 MICROSECOND)"
    };
}

pub(crate) use now;

/// A time in microseconds since 1970, as tokens count.
macro_rules! us {
    ($time:expr) => {
        concat!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', ", $time, ")")
    };
}

pub(crate) use us;

/// A duration from a value in microseconds.
macro_rules! span {
    ($value:literal) => {
        concat!("INTERVAL ", $value, " MICROSECOND")
    };
}

statement! {
    /// What is in a row, without a lock: name. Always one row: is there one, its token, the token for the next grant, its
    /// holder, how many microseconds it has to live, and whether it was released.
    Peek -> (BigInt, Nullable<BigInt>, BigInt, Nullable<Binary>, Nullable<BigInt>, BigInt):
    "SELECT l.name IS NOT NULL, CAST(l.token AS SIGNED), ",
    "CAST(GREATEST(COALESCE(l.token + 1, 0), ", us!("UTC_TIMESTAMP(6)"), ") AS SIGNED), CAST(l.holder AS BINARY), ",
    "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at), l.released_at IS NOT NULL ",
    "FROM (SELECT 1 AS one) o LEFT JOIN task_leases l ON l.name = $1",
}

statement! {
    /// A grant where there was no row: name, holder, ttl. Fails if there is one now. Its token is the clock as it is now and not
    /// as it was at the look: meanwhile a row may have been made and deleted.
    Make -> (BigInt):
    "INSERT INTO task_leases (name, holder, token, acquired_at, expires_at, released_at, note) ",
    "VALUES ($1, $2, ", us!(now!()), ", ", now!(), ", ", now!(), " + ", span!("$3"), ", NULL, NULL)",
}

statement! {
    /// A grant of a lease that has expired: name, holder, ttl, token, and the token that was read. Every grant, eviction and
    /// pause changes the token, so one of those who read it finds it. A row that anybody has locked is passed over: then the inner
    /// select has no row, which is known before the table is touched.
    Take -> (BigInt):
    "UPDATE task_leases SET token = $4, holder = $2, acquired_at = ", now!(), ", ",
    "expires_at = ", now!(), " + ", span!("$3"), ", released_at = NULL, note = NULL ",
    "WHERE name = (SELECT f.name FROM (SELECT l.name FROM task_leases l WHERE l.name = $1 AND l.token = $5 ",
        "FOR UPDATE SKIP LOCKED) f) ",
    "AND token = $5 AND expires_at <= ", now!(),
}

statement! {
    /// Law L3: name, holder, ttl. It changes nothing, and may answer so, where the row lives for that ttl already.
    Renew -> (BigInt):
    "UPDATE task_leases SET expires_at = GREATEST(expires_at, ", now!(), " + ", span!("$3"), ") ",
    "WHERE name = $1 AND holder = $2 AND released_at IS NULL AND expires_at > ", now!(),
}

/// The claims of several renewals as a table: a list in JSON, of the name and the holder in hexadecimal digits and the ttl each.
macro_rules! asked {
    () => {
        "JSON_TABLE(CONVERT($1 USING utf8mb4), '$[*]' COLUMNS (n FOR ORDINALITY, name VARCHAR(256) PATH '$[0]', \
         holder VARCHAR(256) PATH '$[1]', ttl BIGINT PATH '$[2]')) a STRAIGHT_JOIN task_leases l FORCE INDEX (PRIMARY) \
         ON l.name = UNHEX(a.name)"
    };
}

statement! {
    /// Law L3 for several: claims. One statement, and so one transaction that ends without us: else a pod that stops in the middle would
    /// keep the rows locked. A row that anybody has locked is passed over.
    ///
    /// Row by row through the key, since a table that is read as a whole would be locked as a whole. MySQL must be told that only the
    /// leases are to be locked, and MariaDB has no word for it. DISTINCT keeps the inner select a step of its own.
    RenewAll -> (BigInt):
    "UPDATE (SELECT DISTINCT l.name, a.ttl FROM ", asked!(), " WHERE l.holder = UNHEX(a.holder) ",
        "FOR UPDATE /*!80001 OF l */ SKIP LOCKED) f ",
    "STRAIGHT_JOIN task_leases t FORCE INDEX (PRIMARY) ON t.name = f.name ",
    "SET t.expires_at = GREATEST(t.expires_at, ", now!(), " + INTERVAL f.ttl MICROSECOND) ",
    "WHERE t.released_at IS NULL AND t.expires_at > ", now!(),
}

statement! {
    /// What is in the rows of several claims, without a lock: claims. A claim's place in the list, from one on; its row's token,
    /// holder, expiry, whether it was released; the clock. What has no row is not in it.
    PeekAll -> (BigInt, Nullable<BigInt>, Nullable<Binary>, Nullable<BigInt>, BigInt, BigInt):
    "SELECT CAST(a.n AS SIGNED), CAST(l.token AS SIGNED), CAST(l.holder AS BINARY), ", us!("l.expires_at"), ", ",
    "l.released_at IS NOT NULL, ", us!("UTC_TIMESTAMP(6)"), " FROM ", asked!(),
}

statement! {
    /// Law L4: name, holder, minimum.
    Release -> (BigInt):
    "UPDATE task_leases SET released_at = ", now!(), ", expires_at = CASE WHEN expires_at > ", now!(), " ",
    "THEN GREATEST(", now!(), ", acquired_at + ", span!("$3"), ") ELSE expires_at END ",
    "WHERE name = $1 AND holder = $2 AND released_at IS NULL",
}

statement! {
    /// The same with `delete_on_release`, where nothing is left to wait for: name, holder, minimum.
    Delete -> (BigInt):
    "DELETE FROM task_leases WHERE name = $1 AND holder = $2 AND released_at IS NULL ",
    "AND (expires_at <= ", now!(), " OR acquired_at + ", span!("$3"), " <= ", now!(), ")",
}

/// The SQL types of a row as `Inspect` reads it.
pub(crate) type InspectRow = (
    Binary,
    Binary,
    BigInt,
    BigInt,
    BigInt,
    Nullable<BigInt>,
    Nullable<Binary>,
    BigInt,
);

macro_rules! inspect_row {
    () => {
        concat!(
            "SELECT CAST(name AS BINARY), CAST(holder AS BINARY), CAST(COALESCE(token, 0) AS SIGNED), ",
            us!("acquired_at"),
            ", ",
            us!("expires_at"),
            ", ",
            us!("released_at"),
            ", CAST(note AS BINARY), ",
            us!("UTC_TIMESTAMP(6)"),
            " FROM task_leases "
        )
    };
}

statement! {
    /// All rows, by name.
    List as InspectRow: inspect_row!(), "ORDER BY CAST(name AS BINARY)"
}

statement! {
    /// One row: name.
    Get as InspectRow: inspect_row!(), "WHERE name = $1"
}

statement! {
    /// `Inspect::evict`: name, holder `evict/{by}`, note.
    Evict -> (BigInt):
    "UPDATE task_leases SET token = GREATEST(token + 1, ", us!(now!()), "), holder = $2, acquired_at = ", now!(), ", ",
    "released_at = NULL, note = $3 WHERE name = $1 AND expires_at > ", now!(),
}

statement! {
    /// `Inspect::evict_now`: name, holder `evict/{by}`, note.
    EvictNow -> (BigInt):
    "UPDATE task_leases SET token = GREATEST(token + 1, ", us!(now!()), "), holder = $2, acquired_at = ", now!(), ", ",
    "expires_at = ", now!(), ", released_at = NULL, note = $3 WHERE name = $1 AND expires_at > ", now!(),
}

statement! {
    /// `Inspect::pause`: name, holder `pause/{by}`, duration, note. From when on it may end is the displaced holder's expiry,
    /// which a pause that is replaced hands on.
    ///
    /// The one statement whose assignments must be evaluated from left to right, as those of an upsert always are.
    Pause -> (BigInt):
    "INSERT INTO task_leases (name, holder, token, acquired_at, expires_at, released_at, note) ",
    "VALUES ($1, $2, ", us!(now!()), ", ", now!(), ", ", now!(), " + ", span!("$3"), ", NULL, $4) ",
    "ON DUPLICATE KEY UPDATE token = GREATEST(token + 1, ", us!(now!()), "), ",
    "acquired_at = GREATEST(", now!(), ", CASE WHEN LEFT(holder, 6) = 'pause/' AND released_at IS NULL ",
        "THEN acquired_at ELSE expires_at END), ",
    "expires_at = GREATEST(", now!(), " + ", span!("$3"), ", acquired_at), ",
    "holder = $2, released_at = NULL, note = $4",
}

statement! {
    /// `Inspect::resume`: name.
    Resume -> (BigInt):
    "UPDATE task_leases SET released_at = ", now!(), ", expires_at = GREATEST(acquired_at, ", now!(), ") ",
    "WHERE name = $1 AND LEFT(holder, 6) = 'pause/' AND released_at IS NULL AND expires_at > ", now!(),
}

statement! {
    /// `Inspect::purge`, which rows: age.
    Purgeable -> (Binary):
    "SELECT CAST(name AS BINARY) FROM task_leases WHERE expires_at <= UTC_TIMESTAMP(6) - ", span!("$1"), " ",
    "AND token < ", us!("UTC_TIMESTAMP(6)"), " ORDER BY CAST(name AS BINARY)",
}

statement! {
    /// `Inspect::purge`, one row: name, age. By its key, since a condition without an index locks every row it reads.
    Purge -> (BigInt):
    "DELETE FROM task_leases WHERE name = $1 AND expires_at <= ", now!(), " - ", span!("$2"), " ",
    "AND token < ", us!(now!()),
}

statement! {
    /// What was just noted in the session of a failure: number and text of the first condition and of the last.
    Conditions -> (BigInt, Binary, BigInt, Binary):
    "SELECT CAST(@lease_e1 AS SIGNED), CAST(@lease_m1 AS BINARY), CAST(@lease_e2 AS SIGNED), CAST(@lease_m2 AS BINARY)",
}

statement! {
    /// Whether the session commits each statement by itself.
    Autocommit -> (BigInt):
    "SELECT @@autocommit",
}

#[cfg(test)]
mod tests {
    use diesel::debug_query;
    use diesel::query_builder::QueryFragment;
    use lease_diesel::Bound;

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
        add!(Peek Make Take Renew RenewAll PeekAll Release Delete List Get Evict EvictNow Pause Resume Purgeable Purge Conditions Autocommit);
        use crate::fence::Check;
        add!(Check);
        texts += concat!("-- NOW stands for\n", now!(), ";\n");
        assert_eq!(texts, include_str!("../tests/statements.sql"), "{texts}");
    }

    #[test]
    fn a_value_used_twice_is_bound_twice() {
        let values = [
            Value::Text("job"),
            Value::Text("pod/1"),
            Value::Int(7),
            Value::Text("why"),
        ];
        let text = debug_query::<Mysql, _>(&Bound::new(Pause, &values)).to_string();
        assert!(text.contains("holder = ?, released_at = NULL, note = ?"), "{text}");
        assert_eq!(text.matches('?').count(), 7, "{text}");
        assert!(Bound::new(Pause, &values).is_safe_to_cache_prepared(&Mysql).unwrap());
    }

    #[test]
    fn a_missing_value_is_an_error() {
        let mut builder = diesel::mysql::MysqlQueryBuilder::default();
        let none: [Value<'_>; 0] = [];
        assert!(Bound::new(Renew, &none).to_sql(&mut builder, &Mysql).is_err());
    }

    /// MySQL evaluates assignments from left to right, MariaDB may evaluate them at once.
    #[test]
    fn no_assignment_of_an_update_reads_what_another_sets() {
        for text in [
            Take::TEXT,
            Renew::TEXT,
            RenewAll::TEXT,
            Release::TEXT,
            Evict::TEXT,
            EvictNow::TEXT,
            Resume::TEXT,
        ] {
            let text = text.replace(now!(), "NOW");
            let text = text.replace("t.", "");
            let (set, _) = text.split_once(" SET ").unwrap().1.split_once(" WHERE ").unwrap();
            let columns = ["token", "holder", "acquired_at", "expires_at", "released_at", "note"];
            let is_set =
                |column: &&str| set.starts_with(&format!("{column} = ")) || set.contains(&format!(", {column} = "));
            for column in columns.into_iter().filter(is_set) {
                // Once where it is set; once more at the most, where it becomes something of its own old value.
                let own = format!("{column} = ");
                let assignment = &set[set.find(&own).unwrap() + own.len()..];
                let end = columns
                    .iter()
                    .filter_map(|next| assignment.find(&format!(", {next} = ")))
                    .min();
                let assignment = &assignment[..end.unwrap_or(assignment.len())];
                let others = columns.into_iter().filter(|other| *other != column).filter(is_set);
                for other in others {
                    assert!(!assignment.contains(other), "{column} = {assignment} reads {other}");
                }
            }
        }
    }
}

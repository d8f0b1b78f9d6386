//! The statements: fixed texts, prepared once per connection.
//!
//! `diesel::sql_query` and the query builder's `UPDATE` are prepared anew at each use, which halves the throughput;
//! a query fragment of a fixed text and a static id is kept by the connection.
//!
//! What they answer with is cast, so that it has the same type whatever the table is like. Else a table that is altered
//! would leave each connection with a statement that fails for good, since the server refuses another type of answer
//! ("cached plan must not change result type"); and eight bytes of another type would be read as a token.

use diesel::pg::Pg;
use diesel::query_builder::AstPass;
use diesel::result::QueryResult;
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz};
use lease_diesel::Parameter;
pub(crate) use lease_diesel::{Statement, first, only, statement};

/// A value for a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    Int(i64),
    Texts(&'a [&'a str]),
    Ints(&'a [i64]),
}

impl Parameter<Pg> for Value<'_> {
    const NUMBERED: bool = true;

    fn bind<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        match self {
            Self::Text(value) => out.push_bind_param::<Text, str>(value),
            Self::Int(value) => out.push_bind_param::<BigInt, i64>(value),
            Self::Texts(values) => out.push_bind_param::<Array<Text>, [&str]>(values),
            Self::Ints(values) => out.push_bind_param::<Array<BigInt>, [i64]>(values),
        }
    }
}

/// The database's clock in microseconds since 1970, as tokens count. Not `now()`: after a wait for a lock that is old.
macro_rules! clock_us {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    };
}

pub(crate) use clock_us;

/// A duration from a value in microseconds.
macro_rules! us {
    ($value:literal) => {
        concat!($value, " * interval '1 microsecond'")
    };
}

statement! {
    /// Law L1 and L2 in one round trip: name, holder, ttl. Answers exactly one row: the token if granted, else who
    /// holds the lease; until when, and the clock. No token and no holder when a race was lost.
    ///
    /// `seen` is read first, and each branch hangs on it by a condition without a row, so that at most one is
    /// executed and a loser executes none: it only reads. `taken` skips a row that anybody has locked, at the strength
    /// that conflicts with a fence's `FOR KEY SHARE`. `again` is the retry of a grant whose reply was lost; it waits
    /// for the row first, so that its times are read after the wait.
    Acquire -> (Nullable<BigInt>, Nullable<Text>, Nullable<Timestamptz>, Timestamptz):
    "WITH seen AS MATERIALIZED (",
        "SELECT s.holder, s.expires_at, s.now, s.expires_at <= s.now AS free, ",
        "s.expires_at > s.now AND s.holder = $2 AND s.released_at IS NULL AS ours ",
        "FROM (SELECT l.holder::text COLLATE \"C\" AS holder, l.expires_at, l.released_at, clock_timestamp() AS now ",
            "FROM task_leases l WHERE l.name = $1) s), ",
    "taken AS (",
        "UPDATE task_leases t SET holder = $2, token = GREATEST(t.token + 1, ", clock_us!(), "), ",
        "acquired_at = clock_timestamp(), expires_at = clock_timestamp() + ", us!("$3"), ", ",
        "released_at = NULL, note = NULL ",
        "WHERE EXISTS (SELECT 1 FROM seen WHERE free) ",
        "AND t.name = (SELECT l.name FROM task_leases l WHERE l.name = $1 AND l.expires_at <= clock_timestamp() ",
            "FOR UPDATE SKIP LOCKED) ",
        "AND t.expires_at <= clock_timestamp() RETURNING t.token, t.expires_at), ",
    "again AS (",
        "UPDATE task_leases t SET expires_at = GREATEST(t.expires_at, clock_timestamp() + ", us!("$3"), ") ",
        "WHERE EXISTS (SELECT 1 FROM seen WHERE ours) ",
        "AND t.name = (SELECT l.name FROM task_leases l WHERE l.name = $1 FOR NO KEY UPDATE) ",
        "AND t.holder = $2 AND t.released_at IS NULL AND t.expires_at > clock_timestamp() RETURNING t.token, t.expires_at), ",
    "made AS (",
        "INSERT INTO task_leases AS t (name, holder, token, acquired_at, expires_at, released_at, note) ",
        "SELECT $1, $2, ", clock_us!(), ", clock_timestamp(), clock_timestamp() + ", us!("$3"), ", NULL, NULL ",
        "WHERE NOT EXISTS (SELECT 1 FROM seen) ON CONFLICT (name) DO NOTHING RETURNING t.token, t.expires_at), ",
    "won AS (SELECT token, expires_at FROM taken UNION ALL SELECT token, expires_at FROM again ",
        "UNION ALL SELECT token, expires_at FROM made) ",
    "SELECT won.token::bigint, CASE WHEN NOT seen.free AND NOT seen.ours THEN seen.holder END, ",
    "COALESCE(won.expires_at, seen.expires_at)::timestamptz, clock_timestamp() ",
    "FROM (SELECT 1) one LEFT JOIN won ON true LEFT JOIN seen ON true",
}

statement! {
    /// Law L3: name, holder, ttl. The row is locked first, so that its times are read after a wait for the lock.
    Renew -> (BigInt):
    "UPDATE task_leases t SET expires_at = GREATEST(t.expires_at, clock_timestamp() + ", us!("$3"), ") ",
    "WHERE t.name = (SELECT l.name FROM task_leases l WHERE l.name = $1 AND l.holder = $2 FOR NO KEY UPDATE) ",
    "AND t.holder = $2 AND t.released_at IS NULL AND t.expires_at > clock_timestamp()",
}

statement! {
    /// Why a renewal matched nothing: name.
    Why -> (Text, Nullable<Timestamptz>, Timestamptz, Timestamptz):
    "SELECT holder::text COLLATE \"C\", released_at::timestamptz, expires_at::timestamptz, clock_timestamp() ",
    "FROM task_leases WHERE name = $1",
}

statement! {
    /// Law L3 for several: names, holders, ttls. Answers a row for each, in their order: whether it was renewed, and what stood in
    /// the row before. A row that anybody has locked is skipped, and so is found ours and live, and not renewed.
    ///
    /// How many are asked for is not known to the planner, which takes ten for granted: what is joined here is found by the primary
    /// key or by a hash, since to compare each with all others took most of the time of a thousand.
    RenewAll -> (Bool, Nullable<Text>, Nullable<Timestamptz>, Nullable<Timestamptz>, Timestamptz):
    "WITH asked AS MATERIALIZED (SELECT a.name, a.holder, a.ttl, a.n ",
        "FROM unnest($1, $2, $3) WITH ORDINALITY AS a (name, holder, ttl, n)), ",
    "seen AS MATERIALIZED (SELECT a.n, l.holder::text COLLATE \"C\" AS holder, l.released_at, l.expires_at ",
        "FROM asked a JOIN task_leases l ON l.name = a.name), ",
    "free AS MATERIALIZED (SELECT a.name, a.holder, a.ttl, a.n ",
        "FROM asked a JOIN task_leases l ON l.name = a.name AND l.holder = a.holder FOR NO KEY UPDATE OF l SKIP LOCKED), ",
    "renewed AS (",
        "UPDATE task_leases t SET expires_at = GREATEST(t.expires_at, clock_timestamp() + a.", us!("ttl"), ") FROM free a ",
        "WHERE t.name = a.name AND t.holder = a.holder AND t.released_at IS NULL AND t.expires_at > clock_timestamp() ",
        "RETURNING a.n) ",
    "SELECT renewed.n IS NOT NULL, seen.holder, seen.released_at::timestamptz, seen.expires_at::timestamptz, ",
    "clock_timestamp() FROM asked a LEFT JOIN renewed ON renewed.n = a.n LEFT JOIN seen ON seen.n = a.n ORDER BY a.n",
}

/// Tells those who wait that a row's lease may be free. The table is known by its number, since each may call it another way.
macro_rules! tell {
    () => {
        "pg_notify('lease_' || 'task_leases'::regclass::oid, name)"
    };
}

macro_rules! release {
    () => {
        concat!(
            "UPDATE task_leases SET released_at = clock_timestamp(), expires_at = CASE WHEN expires_at > clock_timestamp() ",
            "THEN GREATEST(clock_timestamp(), acquired_at + ",
            us!("$3"),
            ") ELSE expires_at END ",
            "WHERE name = $1 AND holder = $2 AND released_at IS NULL"
        )
    };
}

statement! {
    /// Law L4: name, holder, minimum.
    Release -> (BigInt): release!()
}

statement! {
    /// The same, and those who wait are told.
    ReleaseAndTell -> (BigInt): release!(), " RETURNING ", tell!()
}

macro_rules! release_or_delete {
    ($returned:expr) => {
        concat!(
            "WITH gone AS (",
            "DELETE FROM task_leases WHERE name = $1 AND holder = $2 AND released_at IS NULL ",
            "AND (expires_at <= clock_timestamp() OR acquired_at + ",
            us!("$3"),
            " <= clock_timestamp()) RETURNING ",
            $returned,
            "), kept AS (",
            "UPDATE task_leases SET released_at = clock_timestamp(), ",
            "expires_at = CASE WHEN expires_at > clock_timestamp() ",
            "THEN GREATEST(clock_timestamp(), acquired_at + ",
            us!("$3"),
            ") ELSE expires_at END ",
            "WHERE NOT EXISTS (SELECT 1 FROM gone) AND name = $1 AND holder = $2 AND released_at IS NULL RETURNING ",
            $returned,
            ") SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM kept)"
        )
    };
}

statement! {
    /// Law L4 with `delete_on_release`: name, holder, minimum. Answers how many rows it released.
    ReleaseOrDelete -> (BigInt): release_or_delete!("1")
}

statement! {
    /// The same, and those who wait are told.
    ReleaseOrDeleteAndTell -> (BigInt): release_or_delete!(tell!())
}

/// The SQL types of a row as `Inspect` reads it.
pub(crate) type InspectRow = (
    Text,
    Text,
    BigInt,
    Timestamptz,
    Timestamptz,
    Nullable<Timestamptz>,
    Nullable<Text>,
    Timestamptz,
);

macro_rules! inspect_row {
    () => {
        concat!(
            "SELECT name::text COLLATE \"C\", holder::text COLLATE \"C\", COALESCE(token, 0)::bigint, ",
            "acquired_at::timestamptz, expires_at::timestamptz, released_at::timestamptz, ",
            "note::text COLLATE \"C\", clock_timestamp() FROM task_leases "
        )
    };
}

statement! {
    /// All rows, by name.
    List as InspectRow: inspect_row!(), "ORDER BY name COLLATE \"C\""
}

statement! {
    /// One row: name.
    Get as InspectRow: inspect_row!(), "WHERE name = $1"
}

statement! {
    /// `Inspect::evict`: name, holder `evict/{by}`, note.
    Evict -> (Timestamptz, Timestamptz):
    "UPDATE task_leases SET holder = $2, token = GREATEST(token + 1, ", clock_us!(), "), ",
    "acquired_at = clock_timestamp(), released_at = NULL, note = $3 ",
    "WHERE name = $1 AND expires_at > clock_timestamp() RETURNING expires_at::timestamptz, clock_timestamp()",
}

statement! {
    /// `Inspect::evict_now`: name, holder `evict/{by}`, note. The strength of its lock waits for an open fence.
    EvictNow -> (Timestamptz, Timestamptz, Text):
    "UPDATE task_leases t SET holder = $2, token = GREATEST(t.token + 1, ", clock_us!(), "), ",
    "acquired_at = clock_timestamp(), expires_at = clock_timestamp(), released_at = NULL, note = $3 ",
    "WHERE t.name = (SELECT l.name FROM task_leases l WHERE l.name = $1 FOR UPDATE) ",
    "AND t.expires_at > clock_timestamp() RETURNING t.expires_at::timestamptz, clock_timestamp(), ", tell!(), "::text",
}

/// From when on a pause may end: the displaced holder's expiry, which a pause that is replaced hands on.
macro_rules! pause_floor {
    () => {
        "CASE WHEN left(t.holder, 6) = 'pause/' AND t.released_at IS NULL THEN t.acquired_at ELSE t.expires_at END"
    };
}

statement! {
    /// `Inspect::pause`: name, holder `pause/{by}`, duration, note. The conflict locks the row before times are read.
    Pause -> (BigInt):
    "INSERT INTO task_leases AS t (name, holder, token, acquired_at, expires_at, released_at, note) ",
    "VALUES ($1, $2, ", clock_us!(), ", clock_timestamp(), clock_timestamp() + ", us!("$3"), ", NULL, $4) ",
    "ON CONFLICT (name) DO UPDATE SET holder = EXCLUDED.holder, token = GREATEST(t.token + 1, ", clock_us!(), "), ",
    "acquired_at = GREATEST(clock_timestamp(), ", pause_floor!(), "), ",
    "expires_at = GREATEST(clock_timestamp() + ", us!("$3"), ", ", pause_floor!(), "), ",
    "released_at = NULL, note = EXCLUDED.note",
}

statement! {
    /// `Inspect::resume`: name.
    Resume -> (BigInt):
    "UPDATE task_leases SET released_at = clock_timestamp(), expires_at = GREATEST(acquired_at, clock_timestamp()) ",
    "WHERE name = $1 AND left(holder, 6) = 'pause/' AND released_at IS NULL AND expires_at > clock_timestamp() RETURNING ", tell!(),
}

statement! {
    /// `Inspect::purge`, which rows: age.
    Purgeable -> (Text):
    "SELECT name::text COLLATE \"C\" FROM task_leases WHERE expires_at <= clock_timestamp() - ", us!("$1"), " ",
    "AND token < ", clock_us!(), " ORDER BY name COLLATE \"C\"",
}

statement! {
    /// `Inspect::purge`, one row: name, age. A row that anybody has locked, such as an open fence, is skipped.
    Purge -> (BigInt):
    "DELETE FROM task_leases t WHERE t.name = (SELECT l.name FROM task_leases l WHERE l.name = $1 ",
    "AND l.expires_at <= clock_timestamp() - ", us!("$2"), " AND l.token < ", clock_us!(), " FOR UPDATE SKIP LOCKED) ",
    "AND t.expires_at <= clock_timestamp() - ", us!("$2"), " AND t.token < ", clock_us!(),
}

/// Whether a schema that the table's name has is closed to us. A look for the table in it would then be an error.
macro_rules! closed {
    () => {
        "EXISTS (SELECT 1 FROM pg_namespace n WHERE n.nspname = $2 AND NOT has_schema_privilege(n.oid, 'USAGE'))"
    };
}

statement! {
    /// After a failure: is the server read-only, is the table there, may we reach it, and which of the grants in a list are
    /// missing: grants, schema, which is empty if none is named.
    Probe -> (diesel::sql_types::Bool, diesel::sql_types::Bool, diesel::sql_types::Bool, Text):
    "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool, ",
    "t.oid IS NOT NULL, ",
    closed!(), " OR EXISTS (SELECT 1 FROM pg_class c WHERE c.relname = 'task_leases' ",
        "AND NOT has_schema_privilege(c.relnamespace, 'USAGE')), ",
    "COALESCE((SELECT string_agg(p, ', ') FROM unnest(string_to_array($1, ',')) p ",
        "WHERE NOT has_table_privilege(t.oid, p)), '') ",
    "FROM (SELECT CASE WHEN NOT ", closed!(), " THEN to_regclass('task_leases') END AS oid) t",
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
                texts += $name::TEXT;
                texts += ";\n";
            )*};
        }
        add!(Acquire Renew RenewAll Why Release ReleaseAndTell ReleaseOrDelete ReleaseOrDeleteAndTell List Get Evict EvictNow Pause Resume);
        add!(Purgeable Purge Probe);
        use crate::fence::Check;
        add!(Check);
        assert_eq!(texts, include_str!("../tests/statements.sql"), "{texts}");
    }

    #[test]
    fn a_value_used_twice_is_sent_once() {
        let values = [Value::Text("job"), Value::Text("pod/1"), Value::Int(7)];
        let text = debug_query::<Pg, _>(&Bound::new(Renew, &values)).to_string();
        assert!(text.contains("t.expires_at, clock_timestamp() + $1 *"), "{text}");
        assert!(
            text.contains("l.name = $2 AND l.holder = $3 FOR NO KEY UPDATE) AND t.holder = $3 "),
            "{text}"
        );
        assert!(text.ends_with(r#"-- binds: [7, "job", "pod/1"]"#), "{text}");
        assert!(Bound::new(Renew, &values).is_safe_to_cache_prepared(&Pg).unwrap());
    }

    #[test]
    fn a_missing_value_is_an_error() {
        let mut builder = diesel::pg::PgQueryBuilder::default();
        let none: [Value<'_>; 0] = [];
        assert!(Bound::new(Renew, &none).to_sql(&mut builder, &Pg).is_err());
    }
}

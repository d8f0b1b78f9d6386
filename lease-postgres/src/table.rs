//! [`Table`]: the table as the catalog has it, and what is wrong with that.

use diesel::result::QueryResult;
use diesel::sql_types::{BigInt, Bool, Nullable, Text};

use crate::engine::Session;
use crate::sql::{clock_us, first, statement};

statement! {
    /// The table itself: its kind, whether it is permanent, its storage options, and the server's clock.
    Relation -> (Text, Bool, Text, BigInt):
    "SELECT relkind::text, relpersistence = 'p', COALESCE(array_to_string(reloptions, ','), ''), ", clock_us!(), " ",
    "FROM pg_class WHERE oid = to_regclass('task_leases')",
}

statement! {
    /// Its columns: name, type, NOT NULL, whether it has a default, and a collation that is not deterministic.
    Columns -> (Text, Text, Bool, Bool, Nullable<Text>):
    "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef OR a.attidentity <> '', ",
    "(SELECT c.collname::text FROM pg_collation c WHERE c.oid = a.attcollation AND NOT c.collisdeterministic) ",
    "FROM pg_attribute a WHERE a.attrelid = to_regclass('task_leases') AND a.attnum > 0 AND NOT a.attisdropped ",
    "ORDER BY a.attnum",
}

statement! {
    /// Its indexes: name, whether it makes `name` alone unique, and whether it has `expires_at` in it.
    Indexes -> (Text, Bool, Bool):
    "SELECT c.relname::text, ",
    "i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indnkeyatts = 1 AND EXISTS (",
        "SELECT 1 FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attname = 'name'), ",
    "EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) ",
        "AND a.attname = 'expires_at') ",
    "FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = to_regclass('task_leases') ",
    "ORDER BY c.relname",
}

/// A column as the statements need it.
struct Needed {
    name: &'static str,
    types: &'static [&'static str],
    /// For `varchar(n)`: the least n.
    width: Option<usize>,
    not_null: bool,
}

const TIMESTAMPTZ: &[&str] = &["timestamp with time zone", "timestamp(6) with time zone"];

const NEEDED: [Needed; 7] = [
    text_column("name", 128, true),
    text_column("holder", 128, true),
    Needed {
        name: "token",
        types: &["bigint"],
        width: None,
        not_null: true,
    },
    Needed {
        name: "acquired_at",
        types: TIMESTAMPTZ,
        width: None,
        not_null: true,
    },
    Needed {
        name: "expires_at",
        types: TIMESTAMPTZ,
        width: None,
        not_null: true,
    },
    Needed {
        name: "released_at",
        types: TIMESTAMPTZ,
        width: None,
        not_null: false,
    },
    text_column("note", 255, false),
];

const fn text_column(name: &'static str, width: usize, not_null: bool) -> Needed {
    Needed {
        name,
        types: &["text", "character varying"],
        width: Some(width),
        not_null,
    }
}

/// The table as it was found, if it was.
pub(crate) struct Table {
    relation: Option<Storage>,
    columns: Vec<Column>,
    indexes: Vec<Index>,
}

struct Storage {
    kind: String,
    permanent: bool,
    options: String,
    clock_us: i64,
}

struct Column {
    name: String,
    type_name: String,
    not_null: bool,
    has_default: bool,
    folds: Option<String>,
}

struct Index {
    name: String,
    is_key: bool,
    has_expiry: bool,
}

impl Table {
    /// Reads the catalog.
    pub(crate) async fn look(session: &mut Session<'_>) -> QueryResult<Self> {
        let relation: Option<(String, bool, String, i64)> = first(session.rows(Relation, &[]).await?);
        let columns: Vec<(String, String, bool, bool, Option<String>)> = session.rows(Columns, &[]).await?;
        let indexes: Vec<(String, bool, bool)> = session.rows(Indexes, &[]).await?;
        Ok(Self {
            relation: relation.map(|(kind, permanent, options, clock_us)| Storage {
                kind,
                permanent,
                options,
                clock_us,
            }),
            columns: columns
                .into_iter()
                .map(|(name, type_name, not_null, has_default, folds)| Column {
                    name,
                    type_name,
                    not_null,
                    has_default,
                    folds,
                })
                .collect(),
            indexes: indexes
                .into_iter()
                .map(|(name, is_key, has_expiry)| Index {
                    name,
                    is_key,
                    has_expiry,
                })
                .collect(),
        })
    }

    pub(crate) fn exists(&self) -> bool {
        self.relation.is_some()
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|found| found.name == column)
    }

    /// The server's clock when it was read, in microseconds since 1970.
    pub(crate) fn clock_us(&self) -> i64 {
        self.relation.as_ref().map_or(0, |relation| relation.clock_us)
    }

    /// What makes the table unfit, each as a sentence without a full stop. Empty for a missing table.
    pub(crate) fn problems(&self) -> Vec<String> {
        let Some(relation) = &self.relation else {
            return Vec::new();
        };
        let mut problems = Vec::new();
        if !matches!(relation.kind.as_str(), "r" | "p") {
            problems.push("it is no table".to_owned());
        }
        if !relation.permanent {
            problems.push("the table is unlogged or temporary, so a crash empties it".to_owned());
        }
        if !self.indexes.iter().any(|index| index.is_key) {
            problems.push("no primary key or unique index on name alone, so several could hold one lease".to_owned());
        }
        problems.extend(NEEDED.iter().flat_map(|needed| self.column_problems(needed)));
        problems.extend(
            self.columns
                .iter()
                .filter(|column| is_in_the_way(column))
                .map(|column| format!("column {} is not ours, is NOT NULL and has no default", column.name)),
        );
        problems
    }

    /// What costs only speed.
    pub(crate) fn slow(&self) -> Vec<String> {
        let Some(relation) = &self.relation else {
            return Vec::new();
        };
        let indexes = self.indexes.iter().filter(|index| index.has_expiry).map(|index| {
            format!(
                "index {} on expires_at makes each renewal rewrite the table's indexes: drop it",
                index.name
            )
        });
        let full = !relation.options.contains("fillfactor=");
        let fillfactor =
            full.then(|| "no fillfactor below 100 is set, which renewals in place need: set 50".to_owned());
        indexes.chain(fillfactor).collect()
    }

    fn column_problems(&self, needed: &Needed) -> Vec<String> {
        let name = needed.name;
        let Some(column) = self.columns.iter().find(|column| column.name == name) else {
            return vec![format!("column {name} is missing: run migrate")];
        };
        let mut problems = Vec::new();
        if !needed.accepts(&column.type_name) {
            let wanted = match needed.width {
                Some(width) => format!("varchar({width})"),
                None => needed.types[0].to_owned(),
            };
            problems.push(format!("column {name} is {}, not {wanted}", column.type_name));
        }
        if needed.not_null && !column.not_null {
            problems.push(format!("column {name} may be null"));
        }
        if !needed.not_null && column.not_null {
            problems.push(format!("column {name} is NOT NULL"));
        }
        if let Some(collation) = &column.folds {
            problems.push(format!(
                "column {name} has the nondeterministic collation {collation}, so names are not compared byte for byte"
            ));
        }
        problems
    }
}

impl Needed {
    fn accepts(&self, type_name: &str) -> bool {
        let (base, width) = match type_name.strip_prefix("character varying(") {
            Some(rest) => ("character varying", rest.trim_end_matches(')').parse().ok()),
            None => (type_name, None),
        };
        self.types.contains(&base) && width.is_none_or(|width: usize| Some(width) >= self.width)
    }
}

/// Whether our inserts, which don't name this column, would fail on it.
fn is_in_the_way(column: &Column) -> bool {
    column.not_null && !column.has_default && NEEDED.iter().all(|needed| needed.name != column.name)
}

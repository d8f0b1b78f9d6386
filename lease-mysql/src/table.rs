//! [`Table`]: the table as the catalog has it, and what is wrong with that.

use diesel::result::QueryResult;
use diesel::sql_types::{BigInt, Nullable, Text};

use crate::engine::Session;
use crate::sql::{Value, first, statement};

/// The table: database, empty for the connection's, and name.
macro_rules! this_table {
    () => {
        "WHERE table_schema = COALESCE(NULLIF(CAST($1 AS CHAR), ''), DATABASE()) AND table_name = CAST($2 AS CHAR) "
    };
}

statement! {
    /// The table itself: its kind, its engine, and the zone that sessions begin in.
    Relation -> (Text, Text, Text):
    "SELECT CAST(table_type AS CHAR), CAST(COALESCE(engine, '') AS CHAR), ",
    "CAST(CASE WHEN @@global.time_zone = 'SYSTEM' THEN @@system_time_zone ELSE @@global.time_zone END AS CHAR) ",
    "FROM information_schema.tables ", this_table!(),
}

statement! {
    /// Its columns: name, type, length, digits of a second, whether it may be null, whether it has a default or makes its own
    /// value, and what else is said of it.
    Columns -> (Text, Text, Nullable<BigInt>, Nullable<BigInt>, BigInt, BigInt, Text):
    "SELECT CAST(column_name AS CHAR), LOWER(CAST(data_type AS CHAR)), CAST(character_maximum_length AS SIGNED), ",
    "CAST(datetime_precision AS SIGNED), is_nullable = 'YES', ",
    "column_default IS NOT NULL OR extra LIKE '%auto_increment%' OR extra LIKE '%GENERATED%', LOWER(CAST(extra AS CHAR)) ",
    "FROM information_schema.columns ", this_table!(), "ORDER BY ordinal_position",
}

statement! {
    /// Its indexes: name, whether it makes `name` alone unique, and whether it has `expires_at` in it.
    Indexes -> (Text, BigInt, BigInt):
    "SELECT CAST(index_name AS CHAR), ",
    "MAX(non_unique) = 0 AND COUNT(*) = 1 AND MAX(LOWER(column_name) = 'name' AND sub_part IS NULL), ",
    "MAX(LOWER(column_name) = 'expires_at') ",
    "FROM information_schema.statistics ", this_table!(), "GROUP BY index_name ORDER BY index_name",
}

/// A column as the statements need it.
struct Needed {
    name: &'static str,
    type_name: &'static str,
    /// The least length, or the digits of a second.
    size: Option<i64>,
    not_null: bool,
}

const fn needed(name: &'static str, type_name: &'static str, size: Option<i64>, not_null: bool) -> Needed {
    Needed {
        name,
        type_name,
        size,
        not_null,
    }
}

const NEEDED: [Needed; 7] = [
    needed("name", "varbinary", Some(128), true),
    needed("holder", "varbinary", Some(128), true),
    needed("token", "bigint", None, true),
    needed("acquired_at", "datetime", Some(6), true),
    needed("expires_at", "datetime", Some(6), true),
    needed("released_at", "datetime", Some(6), false),
    needed("note", "varbinary", Some(255), false),
];

/// The table as it was found, if it was.
pub(crate) struct Table {
    relation: Option<Relationship>,
    columns: Vec<Column>,
    indexes: Vec<Index>,
}

struct Relationship {
    kind: String,
    engine: String,
    zone: String,
}

struct Column {
    name: String,
    type_name: String,
    size: Option<i64>,
    nullable: bool,
    has_default: bool,
    extra: String,
}

struct Index {
    name: String,
    is_key: bool,
    has_expiry: bool,
}

impl Table {
    /// Reads the catalog.
    pub(crate) async fn look(session: &mut Session<'_>) -> QueryResult<Self> {
        type ColumnRow = (String, String, Option<i64>, Option<i64>, i64, i64, String);
        let target = session.target;
        let which = [Value::Text(target.database()), Value::Text(target.table())];
        let relation: Option<(String, String, String)> = first(session.rows(Relation, &which).await?);
        let columns: Vec<ColumnRow> = session.rows(Columns, &which).await?;
        let indexes: Vec<(String, i64, i64)> = session.rows(Indexes, &which).await?;
        let column = |(name, type_name, length, digits, nullable, has_default, extra): ColumnRow| Column {
            name: name.to_lowercase(),
            type_name,
            size: length.or(digits),
            nullable: nullable != 0,
            has_default: has_default != 0,
            extra,
        };
        let index = |(name, is_key, has_expiry)| Index {
            name,
            is_key: is_key != 0,
            has_expiry: has_expiry != 0,
        };
        Ok(Self {
            relation: relation.map(|(kind, engine, zone)| Relationship { kind, engine, zone }),
            columns: columns.into_iter().map(column).collect(),
            indexes: indexes.into_iter().map(index).collect(),
        })
    }

    pub(crate) fn exists(&self) -> bool {
        self.relation.is_some()
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        self.column(column).is_some()
    }

    /// Whether a column is text whose letters are compared, as the Go package made it.
    pub(crate) fn is_text(&self, column: &str) -> bool {
        self.column(column).is_some_and(|column| column.type_name == "varchar")
    }

    fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// What makes the table unfit, each as a sentence without a full stop. Empty for a missing table.
    pub(crate) fn problems(&self) -> Vec<String> {
        let Some(relation) = &self.relation else {
            return Vec::new();
        };
        let mut problems = Vec::new();
        if relation.kind != "BASE TABLE" {
            problems.push("it is no table".to_owned());
        } else if !relation.engine.eq_ignore_ascii_case("InnoDB") {
            problems.push(format!("the engine is {}, not InnoDB", relation.engine));
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

    /// What costs only speed, or goes wrong only with pods of the Go package, by whose index they are known.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for index in self.indexes.iter().filter(|index| index.has_expiry) {
            warnings.push(format!(
                "index {} on expires_at makes each renewal write to it too: drop it when the last Go pod is gone",
                index.name
            ));
            if let Some(relation) = &self.relation
                && !is_utc(&relation.zone)
            {
                warnings.push(format!(
                    "sessions begin in the time zone {}: pods of the Go package write their times in it, so set theirs \
                     to UTC",
                    relation.zone
                ));
            }
        }
        warnings
    }

    fn column_problems(&self, needed: &Needed) -> Vec<String> {
        let name = needed.name;
        let Some(column) = self.column(name) else {
            return vec![format!("column {name} is missing: run migrate")];
        };
        let shown = |type_name: &str, size: Option<i64>| match size {
            Some(size) => format!("{type_name}({size})"),
            None => type_name.to_owned(),
        };
        let mut problems = Vec::new();
        if column.type_name != needed.type_name || column.size.unwrap_or(0) < needed.size.unwrap_or(0) {
            problems.push(format!(
                "column {name} is {}, not {}",
                shown(&column.type_name, column.size),
                shown(needed.type_name, needed.size)
            ));
        }
        if column.extra.contains("on update") {
            problems.push(format!("column {name} has an ON UPDATE clause"));
        }
        if column.extra.contains("virtual generated") || column.extra.contains("stored generated") {
            problems.push(format!("column {name} is generated"));
        }
        if needed.not_null && column.nullable {
            problems.push(format!("column {name} may be null"));
        }
        if !needed.not_null && !column.nullable {
            problems.push(format!("column {name} is NOT NULL"));
        }
        problems
    }
}

/// Whether our inserts, which don't name this column, would fail on it.
fn is_in_the_way(column: &Column) -> bool {
    !column.nullable && !column.has_default && NEEDED.iter().all(|needed| needed.name != column.name)
}

fn is_utc(zone: &str) -> bool {
    [
        "UTC",
        "+00:00",
        "-00:00",
        "Etc/UTC",
        "GMT",
        "Etc/GMT",
        "Universal",
        "Zulu",
    ]
    .contains(&zone)
}

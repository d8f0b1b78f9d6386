//! [`Target`]: which table.

use std::fmt;
use std::sync::Arc;

use lease_core::{Operation, RepoError, RepoErrorKind};
use lease_diesel::text;

/// The longest identifier that PostgreSQL does not cut, in bytes ("Identifiers and Key Words").
const MAX_BYTES: usize = 63;

/// Which table: `task_leases` in the search path, or one with a name of its own. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Target(Option<Arc<Named>>);

#[derive(PartialEq, Eq)]
struct Named {
    schema: Option<String>,
    /// As it stands in a statement: quoted, with its schema if it has one.
    quoted: String,
}

impl Target {
    /// Reads `table` or `schema.table`, each exactly as it is called, with its case.
    pub(crate) fn parse(name: &str) -> Result<Self, RepoError> {
        let parts: Vec<&str> = name.split('.').collect();
        let (schema, table) = match parts[..] {
            [table] => (None, table),
            [schema, table] => (Some(schema), table),
            _ => return Err(refused(name, "it has more than one dot")),
        };
        for part in schema.iter().chain([&table]) {
            if part.is_empty() {
                return Err(refused(name, "a part of it is empty"));
            }
            if part.len() > MAX_BYTES {
                return Err(refused(name, "PostgreSQL cuts identifiers after 63 bytes"));
            }
            if part.contains(char::is_control) {
                return Err(refused(name, "it has a control character"));
            }
        }
        if name == "task_leases" {
            return Ok(Self::default());
        }
        let quoted: Vec<String> = schema.iter().chain([&table]).map(|part| quote(part)).collect();
        Ok(Self(Some(Arc::new(Named {
            schema: schema.map(str::to_owned),
            quoted: quoted.join("."),
        }))))
    }

    /// The schema it names, if it does.
    pub(crate) fn schema(&self) -> Option<&str> {
        self.0.as_ref()?.schema.as_deref()
    }

    /// A text about `task_leases`, for this table: as an identifier, and in quotes as the name that `to_regclass` reads.
    pub(crate) fn rewrite(&self, text: &str) -> Option<String> {
        let quoted = &self.0.as_ref()?.quoted;
        let literal = format!("'{}'", quoted.replace('\'', "''"));
        // In one go: the name itself may be `task_leases`, in another schema.
        let parts = text
            .split("'task_leases'")
            .map(|part| part.replace("task_leases", quoted));
        Some(parts.collect::<Vec<_>>().join(&literal))
    }
}

fn quote(part: &str) -> String {
    format!("\"{}\"", part.replace('"', "\"\""))
}

fn refused(name: &str, why: &str) -> RepoError {
    RepoError::new(RepoErrorKind::Config, Operation::Connect)
        .with_source(text(format!("{name:?} can't be the table's name: {why}")))
        .never_executed()
}

/// As it stands in a statement.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_ref().map_or("task_leases", |named| &named.quoted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_wherever_it_stands() {
        for (name, text) in [
            ("Jobs", r#"SELECT FROM "Jobs" WHERE to_regclass('"Jobs"')"#),
            (
                "ops.my leases",
                r#"SELECT FROM "ops"."my leases" WHERE to_regclass('"ops"."my leases"')"#,
            ),
            (
                "ops.task_leases",
                r#"SELECT FROM "ops"."task_leases" WHERE to_regclass('"ops"."task_leases"')"#,
            ),
            (r#"a"b'c"#, r#"SELECT FROM "a""b'c" WHERE to_regclass('"a""b''c"')"#),
        ] {
            let target = Target::parse(name).unwrap();
            let rewritten = target.rewrite("SELECT FROM task_leases WHERE to_regclass('task_leases')");
            assert_eq!(rewritten.as_deref(), Some(text));
        }
        assert!(Target::parse("task_leases").unwrap() == Target::default());
    }

    #[test]
    fn a_name_that_would_be_another_one_in_the_database_is_refused() {
        for (name, why) in [
            ("", "empty"),
            ("ops.", "empty"),
            ("a.b.c", "more than one dot"),
            ("a\0b", "control character"),
            (&"é".repeat(32), "63 bytes"),
        ] {
            let error = Target::parse(name).err().expect("it is refused");
            assert_eq!(error.kind(), RepoErrorKind::Config);
            let source = std::error::Error::source(&error).unwrap().to_string();
            assert!(source.contains(why), "{source}");
        }
        assert!(Target::parse(&"é".repeat(31)).is_ok());
    }
}

//! [`Target`]: which table.

use std::fmt;
use std::sync::Arc;

use lease_core::{Operation, RepoError, RepoErrorKind};
use lease_diesel::text;

/// The longest identifier, in characters (MySQL manual, "Identifier Length Limits").
const MAX_CHARACTERS: usize = 64;

/// Which table: `task_leases` in the connection's database, or one with a name of its own. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Target(Option<Arc<Named>>);

#[derive(PartialEq, Eq)]
struct Named {
    database: Option<String>,
    table: String,
    /// As it stands in a statement: quoted, with its database if it has one.
    quoted: String,
}

impl Target {
    /// Reads `table` or `database.table`, each exactly as it is called.
    pub(crate) fn parse(name: &str) -> Result<Self, RepoError> {
        let parts: Vec<&str> = name.split('.').collect();
        let (database, table) = match parts[..] {
            [table] => (None, table),
            [database, table] => (Some(database), table),
            _ => return Err(refused(name, "it has more than one dot")),
        };
        for part in database.iter().chain([&table]) {
            if part.is_empty() {
                return Err(refused(name, "a part of it is empty"));
            }
            if part.chars().count() > MAX_CHARACTERS {
                return Err(refused(name, "an identifier has at most 64 characters"));
            }
            if part.ends_with(' ') {
                return Err(refused(name, "an identifier can't end with a space"));
            }
            // Beyond U+FFFF the server stores a question mark.
            if part.contains(|c: char| c.is_control() || c > '\u{ffff}') {
                return Err(refused(name, "it has a character that an identifier can't have"));
            }
        }
        if name == "task_leases" {
            return Ok(Self::default());
        }
        let quoted: Vec<String> = database.iter().chain([&table]).map(|part| quote(part)).collect();
        Ok(Self(Some(Arc::new(Named {
            database: database.map(str::to_owned),
            table: table.to_owned(),
            quoted: quoted.join("."),
        }))))
    }

    /// The database it names; empty for the connection's.
    pub(crate) fn database(&self) -> &str {
        let database = self.0.as_ref().and_then(|named| named.database.as_deref());
        database.unwrap_or_default()
    }

    /// The table's name, without its database.
    pub(crate) fn table(&self) -> &str {
        self.0.as_ref().map_or("task_leases", |named| &named.table)
    }

    /// A text about `task_leases`, for this table.
    pub(crate) fn rewrite(&self, text: &str) -> Option<String> {
        Some(text.replace("task_leases", &self.0.as_ref()?.quoted))
    }
}

fn quote(part: &str) -> String {
    format!("`{}`", part.replace('`', "``"))
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
            ("Jobs", "SELECT 1 FROM `Jobs` WHERE name = $1"),
            ("ops.my leases", "SELECT 1 FROM `ops`.`my leases` WHERE name = $1"),
            ("a`b'c", "SELECT 1 FROM `a``b'c` WHERE name = $1"),
        ] {
            let target = Target::parse(name).unwrap();
            let rewritten = target.rewrite("SELECT 1 FROM task_leases WHERE name = $1");
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
            ("a\0b", "can't have"),
            ("a\u{1f600}", "can't have"),
            ("a ", "space"),
            (&"é".repeat(65), "64 characters"),
        ] {
            let error = Target::parse(name).err().expect("it is refused");
            assert_eq!(error.kind(), RepoErrorKind::Config);
            let source = std::error::Error::source(&error).unwrap().to_string();
            assert!(source.contains(why), "{source}");
        }
        assert!(Target::parse(&"é".repeat(64)).is_ok());
    }
}

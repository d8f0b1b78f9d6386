//! [`Text`]: a statement of ours, as the tests of each backend pin them.

use anyhow::Context;

/// Those of lease-postgres.
pub const POSTGRES: &str = include_str!("../../../../lease-postgres/tests/statements.sql");
/// Those of lease-mysql.
pub const MYSQL: &str = include_str!("../../../../lease-mysql/tests/statements.sql");
/// Those of lease-sqlite.
pub const SQLITE: &str = include_str!("../../../../lease-sqlite/tests/statements.sql");

/// A statement and which value stands where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// With `$1`, `$2`, and what `NOW` stands for.
    pub numbered: String,
    /// With `?` for each value.
    pub marked: String,
    /// Which value stands at each `?`, from zero on.
    pub places: Vec<usize>,
}

impl Text {
    /// The statement of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn of(statements: &str, name: &str) -> anyhow::Result<Self> {
        Self::find(statements, name).with_context(|| format!("no statement {name}"))
    }

    fn find(statements: &str, name: &str) -> Option<Self> {
        let (statements, now) = statements
            .split_once("-- NOW stands for\n")
            .map_or((statements, None), |(statements, now)| {
                (statements, Some(now.trim().trim_end_matches(';')))
            });
        let (_, rest) = statements.split_once(&format!("-- {name}\n"))?;
        let line = rest.lines().next()?.trim_end_matches(';');
        let numbered = now.map_or_else(|| line.to_owned(), |now| with_now(line, now));
        let mut pieces = numbered.split('$');
        let mut marked = pieces.next()?.to_owned();
        let mut places = Vec::new();
        for piece in pieces {
            let (number, rest) = piece.split_at_checked(1)?;
            places.push(number.parse::<usize>().ok()?.checked_sub(1)?);
            marked += "?";
            marked += rest;
        }
        Some(Self {
            numbered,
            marked,
            places,
        })
    }
}

/// Only the whole word.
fn with_now(line: &str, now: &str) -> String {
    let is_word = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || "_(".contains(letter));
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("NOW") {
        text += before;
        let part = is_word(text.chars().next_back().filter(|letter| *letter != '(')) || is_word(after.chars().next());
        text += if part { "NOW" } else { now };
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_of_the_floor_has_all_its_values() {
        for (statements, name, values) in [
            (POSTGRES, "Acquire", 3),
            (POSTGRES, "Renew", 3),
            (POSTGRES, "Release", 3),
            (MYSQL, "Peek", 1),
            (MYSQL, "Take", 5),
            (MYSQL, "Renew", 3),
            (MYSQL, "Release", 3),
            (SQLITE, "Peek", 1),
            (SQLITE, "Acquire", 3),
            (SQLITE, "Renew", 3),
            (SQLITE, "Release", 3),
        ] {
            let text = Text::of(statements, name).unwrap();
            assert!(!text.marked.contains('$') && !text.marked.contains(" NOW "), "{text:?}");
            assert_eq!(text.marked.matches('?').count(), text.places.len());
            assert_eq!(text.places.iter().max(), Some(&(values - 1)), "{text:?}");
        }
    }

    #[test]
    fn a_word_that_has_now_in_it_stays() {
        assert_eq!(
            with_now("SET a = NOW, b = NOW(6), c = max(NOW, KNOWN)", "n"),
            "SET a = n, b = NOW(6), c = max(n, KNOWN)"
        );
    }
}

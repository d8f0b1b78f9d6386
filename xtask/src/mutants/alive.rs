//! The mutants that are known to live, and why that is right.

use anyhow::bail;
use serde::Deserialize;

use super::outcomes::Outcomes;

/// More would hide what is missing in the tests.
const MAX: usize = 10;

/// The list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alive {
    #[serde(default)]
    alive: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// `file: what is replaced`, as cargo-mutants says it, without line and column.
    mutant: String,
    /// Why no test can notice it, or why none should.
    reason: String,
}

/// What does not agree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Alive, but not on the list.
    pub(crate) unlisted: Vec<String>,
    /// On the list, but not alive.
    pub(crate) stale: Vec<String>,
}

impl Alive {
    /// Reads the list.
    ///
    /// # Errors
    ///
    /// It is no list of mutants and reasons, a reason is empty, or it is too long.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let list: Self = toml::from_str(text)?;
        if let Some(entry) = list.alive.iter().find(|entry| entry.reason.trim().is_empty()) {
            bail!("no reason for {}", entry.mutant);
        }
        if list.alive.len() > MAX {
            bail!("{} mutants are listed, at most {MAX} may be", list.alive.len());
        }
        Ok(list)
    }

    /// Compares with what was found. One entry stands for one mutant, also where several read the same.
    pub(crate) fn compare(&self, outcomes: &Outcomes, all_files: bool) -> Verdict {
        let mut stale: Vec<String> = self.alive.iter().map(|entry| entry.mutant.clone()).collect();
        let mut unlisted = Vec::new();
        for mutant in &outcomes.alive {
            match stale.iter().position(|listed| listed == mutant) {
                Some(at) => drop(stale.remove(at)),
                None => unlisted.push(mutant.clone()),
            }
        }
        if !all_files {
            stale.clear();
        }
        Verdict { unlisted, stale }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(mutant: &str, reason: &str) -> String {
        format!("[[alive]]\nmutant = \"{mutant}\"\nreason = \"{reason}\"\n")
    }

    fn found(alive: &[&str]) -> Outcomes {
        Outcomes {
            alive: alive.iter().map(|mutant| (*mutant).to_owned()).collect(),
            ..Outcomes::default()
        }
    }

    #[test]
    fn every_survivor_is_listed_and_every_listed_one_survives() {
        let list = Alive::parse(&[entry("a", "x"), entry("a", "x"), entry("b", "x")].concat()).unwrap();
        let verdict = list.compare(&found(&["a", "c"]), true);
        assert_eq!(verdict.unlisted, ["c"]);
        assert_eq!(verdict.stale, ["a", "b"]);
        assert_eq!(list.compare(&found(&["a"]), false).stale, [""; 0]);
    }

    #[test]
    fn list_is_short_and_has_reasons() {
        assert!(Alive::parse("").is_ok());
        assert!(Alive::parse(&entry("a", " ")).is_err());
        assert!(Alive::parse("[[alive]]\nmutant = \"a\"\n").is_err());
        assert!(Alive::parse(&entry("a", "x").repeat(MAX + 1)).is_err());
        assert!(Alive::parse(&entry("a", "x").repeat(MAX)).is_ok());
    }
}

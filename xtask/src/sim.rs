//! `sim`: pods with the real keeper in a simulated world, in release mode.

use crate::report::Report;
use crate::run::{self, cargo};

/// What `sim` can be told: it is passed on. See `cargo xtask sim -- --help`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many tenures, at least.
    #[arg(long)]
    tenures: Option<u64>,
    /// The seed of the first world.
    #[arg(long)]
    from_seed: Option<u64>,
    /// Plays the world of this seed alone, and prints what was seen of it.
    #[arg(long)]
    seed: Option<u64>,
    /// Breaks this rule on purpose.
    #[arg(long)]
    mutant: Option<String>,
    /// Breaks one rule after the other, and fails if one is not caught.
    #[arg(long)]
    mutants: bool,
    /// How many threads play worlds.
    #[arg(long)]
    threads: Option<usize>,
}

impl Args {
    fn words(&self) -> Vec<String> {
        let numbers = [
            ("--tenures", self.tenures),
            ("--from-seed", self.from_seed),
            ("--seed", self.seed),
            ("--threads", self.threads.map(|threads| threads as u64)),
        ];
        let numbers = numbers
            .into_iter()
            .filter_map(|(flag, number)| Some((flag, number?.to_string())));
        let mutant = self.mutant.iter().map(|name| ("--mutant", name.clone()));
        let mut words: Vec<String> = numbers
            .chain(mutant)
            .flat_map(|(flag, value)| [flag.to_owned(), value])
            .collect();
        if self.mutants {
            words.push("--mutants".to_owned());
        }
        words
    }
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    prove("sim", &args.words())
}

/// Runs a command of lease-proof, whose tables go to standard error.
pub(crate) fn prove(command: &str, words: &[String]) -> anyhow::Result<Report> {
    let mut proof = cargo(["run", "--quiet", "--release", "--package", "lease-proof", "--", command]);
    proof.args(words);
    let mut report = Report::default();
    if !run::succeeds(&mut proof)? {
        report.miss(format!("{command} failed: see above"));
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_told_is_passed_on() {
        let args = Args {
            tenures: None,
            from_seed: None,
            seed: Some(7),
            mutant: Some("HasNoGate".to_owned()),
            mutants: false,
            threads: None,
        };
        assert_eq!(args.words(), ["--seed", "7", "--mutant", "HasNoGate"]);
    }
}

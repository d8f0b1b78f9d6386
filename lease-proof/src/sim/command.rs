//! The command `sim`.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::process::ExitCode;

use anyhow::{Context, bail};

use super::invariant::judge;
use super::{Batch, Broken, CAUGHT, again, hunt, play};
use crate::table::table;

/// How many tenures a mutant has until it must be caught.
const HUNT: u64 = 10_000;

/// What `sim` can be told.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many tenures, at least: grants that the store committed, retries not counted.
    #[arg(long, default_value_t = 100_000)]
    tenures: u64,
    /// The seed of the first world; the others follow it.
    #[arg(long, default_value_t = 1)]
    from_seed: u64,
    /// Plays the world of this seed alone, and prints what was seen of it.
    #[arg(long, conflicts_with_all = ["tenures", "from_seed"])]
    seed: Option<u64>,
    /// Breaks this rule on purpose.
    #[arg(long)]
    mutant: Option<String>,
    /// Breaks one rule after the other, and fails if one is not caught.
    #[arg(long, conflicts_with_all = ["seed", "mutant", "tenures"])]
    mutants: bool,
    /// How many threads play worlds; one for each core if not said. What comes out is the same.
    #[arg(long)]
    threads: Option<NonZero<usize>>,
}

/// The command: fails if an invariant is violated, or a mutant is not caught.
///
/// # Errors
/// When there is no mutant of the name that was given.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mutant = |name: &String| Broken::of_name(name).with_context(|| format!("there is no mutant {name}"));
    let broken = args.mutant.as_ref().map(mutant).transpose()?;
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZero::get);
    let good = if args.mutants {
        all_mutants(args.from_seed, threads)
    } else if let Some(seed) = args.seed {
        one(seed, broken)
    } else if args.tenures == 0 {
        bail!("no tenures prove nothing");
    } else {
        many(args.from_seed, args.tenures, threads, broken)
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::print_stdout, reason = "this is what the command is for")]
fn one(seed: u64, broken: Option<Broken>) -> bool {
    let history = play(seed, broken);
    for seen in &history.seen {
        println!("{seen}");
    }
    println!("fingerprint {:016x}", history.fingerprint());
    let violations = judge(&history);
    for violation in &violations {
        println!("VIOLATED {violation}");
    }
    violations.is_empty()
}

#[expect(clippy::print_stdout, reason = "this is what the command is for")]
fn many(from: u64, tenures: u64, threads: usize, broken: Option<Broken>) -> bool {
    let batch = Batch::play(from, tenures, threads, broken, |_| false);
    let mut table = table(&["", "count"]);
    table.add_row(["seeds".to_owned(), format!("{from} to {}", batch.until - 1)]);
    table.add_row(["tenures".to_owned(), batch.tally.tenures.to_string()]);
    let mut counted = |counts: &BTreeMap<&str, u64>, prefix: &str| {
        for (what, count) in counts {
            table.add_row([format!("{prefix}{what}"), count.to_string()]);
        }
    };
    counted(&batch.tally.counts, "");
    counted(&batch.tally.faults, "fault: ");
    table.add_row(["violations".to_owned(), batch.found.len().to_string()]);
    println!("{table}");
    for found in batch.found.iter().take(20) {
        for violation in &found.violations {
            println!("VIOLATED {violation}: {}", again(found.seed, broken));
        }
    }
    batch.found.is_empty()
}

#[expect(clippy::print_stdout, reason = "this is what the command is for")]
fn all_mutants(from: u64, threads: usize) -> bool {
    let mut table = table(&["mutant", "caught by", "after tenures", "seed"]);
    let mut alive = Vec::new();
    for (broken, by) in CAUGHT {
        let hunt = hunt(*broken, by, from, HUNT, threads);
        let first = |what: fn(&super::Found) -> u64| {
            let first = hunt.first.as_ref().map(what);
            first.map_or_else(|| "-".to_owned(), |number| number.to_string())
        };
        let (tenures, seed) = (first(|found| found.tenures), first(|found| found.seed));
        table.add_row([broken.to_string(), hunt.by.join(", "), tenures, seed]);
        if !hunt.missing.is_empty() {
            alive.push(format!("{broken} by {}", hunt.missing.join(", ")));
        }
    }
    println!("{table}");
    for alive in &alive {
        println!("NOT CAUGHT within {HUNT} tenures: {alive}");
    }
    alive.is_empty()
}

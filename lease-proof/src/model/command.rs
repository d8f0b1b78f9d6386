//! The command `model`.

use std::num::NonZero;
use std::process::ExitCode;

use super::{Bounds, DEEP, NOTICED, OUT_OF_REACH, SMALL, explore, judge};
use crate::table::table;

/// What `model` can be told.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only the small runs, which the tests repeat.
    #[arg(long)]
    small: bool,
    /// Only the run of this name.
    #[arg(long)]
    run: Option<String>,
    /// Breaks one rule after the other, and fails if one is not noticed by the rule that is about it.
    #[arg(long, conflicts_with_all = ["small", "run"])]
    mutants: bool,
    /// How many threads; one for each core if not said. The states are the same.
    #[arg(long)]
    threads: Option<NonZero<usize>>,
}

/// The command: fails if a rule is broken, or a mutant is not noticed.
///
/// # Errors
/// When there is no run of the name that was given, or its times do not fit together.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok());
    let good = if args.mutants {
        all_mutants()?
    } else {
        let runs = if args.small { SMALL } else { DEEP };
        let named = |bounds: &&Bounds| args.run.as_ref().is_none_or(|name| bounds.name == name);
        let runs: Vec<&Bounds> = runs.iter().filter(named).collect();
        anyhow::ensure!(!runs.is_empty(), "there is no such run");
        all_runs(&runs, threads.map_or(1, NonZero::get))?
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::print_stdout, reason = "this is what the command is for")]
fn all_runs(runs: &[&Bounds], threads: usize) -> anyhow::Result<bool> {
    let mut table = table(&["run", "states", "transitions", "depth", "seconds", "broken"]);
    let mut good = true;
    for bounds in runs {
        let explored = explore(**bounds, threads)?;
        println!("{}: {}", bounds.name, bounds.about);
        println!("  seen: {}", explored.sightings);
        for (rule, steps) in &explored.counterexamples {
            good = false;
            println!("  BROKEN {rule}, by these steps:");
            for step in steps {
                println!("    {step}");
            }
        }
        table.add_row([
            bounds.name.to_owned(),
            explored.unique.to_string(),
            explored.transitions.to_string(),
            explored.depth.to_string(),
            format!("{:.1}", explored.took.as_secs_f64()),
            explored.counterexamples.len().to_string(),
        ]);
    }
    println!("{table}");
    Ok(good)
}

#[expect(clippy::print_stdout, reason = "this is what the command is for")]
fn all_mutants() -> anyhow::Result<bool> {
    let mut table = table(&["mutant", "run", "noticed by", "steps", "states"]);
    let mut missed = Vec::new();
    for noticed in NOTICED {
        let judged = judge(*noticed)?;
        let steps = judged.counterexamples.get(noticed.rule).map(Vec::len);
        table.add_row([
            format!("{:?}", noticed.broken),
            noticed.run.to_owned(),
            judged.counterexamples.keys().copied().collect::<Vec<_>>().join("\n"),
            steps.map_or_else(|| "-".to_owned(), |steps| steps.to_string()),
            judged.unique.to_string(),
        ]);
        if !judged.as_expected() {
            missed.push(format!("{:?} by {}", noticed.broken, noticed.rule));
        }
    }
    println!("{table}");
    for (broken, why) in OUT_OF_REACH {
        println!("out of reach: {broken:?}: {why}");
    }
    for missed in &missed {
        println!("NOT NOTICED: {missed}");
    }
    Ok(missed.is_empty())
}

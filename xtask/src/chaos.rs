//! `chaos`: pods and real servers on a network of their own, broken on purpose, and the checker of what the pods did.

mod judge;
mod parts;
mod worlds;

use std::thread;

use anyhow::bail;
use clap::ValueEnum;
use serde_json::Value;

use crate::report::{Report, note};
use crate::run::Stopwatch;
use parts::Parts;
use worlds::{Order, play};

/// How many minutes the whole takes, unless it is told otherwise.
const MINUTES: u64 = 10;
/// What the self-check and the start of servers take of them, in seconds.
const AROUND: u64 = 240;

/// What `chaos` can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long it may take in all, about. By default 10.
    #[arg(long, conflicts_with = "faults")]
    minutes: Option<u64>,
    /// Instead, how many faults are made over all engines: 1000 take about an hour on two cores.
    #[arg(long)]
    faults: Option<u64>,
    /// Only these engines. By default all that this machine can have.
    #[arg(long)]
    engine: Vec<Engine>,
    /// What the faults come from. By default another one each time; it is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// How many worlds are played at once. By default one for each core.
    #[arg(long)]
    at_once: Option<usize>,
    /// Breaks this rule on purpose, and nothing else is done: the checker must report overlaps.
    #[arg(long)]
    mutant: Option<Mutant>,
    /// Installs what is missing on a Debian machine, as root.
    #[arg(long)]
    install: bool,
}

/// The servers of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// One PostgreSQL server.
    Postgres,
    /// A PostgreSQL server and its standby.
    PostgresStandby,
    /// One MySQL server.
    Mysql,
    /// One MariaDB server.
    Mariadb,
    /// Three nodes of MariaDB with Galera.
    Galera,
}

/// A rule broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mutant {
    /// f goes on after its time is over.
    IgnoresDropAt,
    /// A lease that another has is taken all the same.
    ForgetsHolder,
}

/// What a value is called on the command line.
fn word(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let parts = Parts::gather(args.install, &args.engine)?;
    let seed = args.seed.unwrap_or_else(parts::any_seed);
    note(format_args!("the seed is {seed}"));
    let watch = Stopwatch::start();
    let mut report = judge::table();
    if args.mutant.is_none() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let at_once = args.at_once.unwrap_or(cores).clamp(1, parts.engines.len());
        let orders = orders(args, &parts, seed, at_once);
        let worlds = play(&parts, &orders, at_once);
        judge::worlds(&mut report, &worlds);
    }
    let broken: Vec<Mutant> = args
        .mutant
        .map_or_else(|| Mutant::value_variants().to_vec(), |mutant| vec![mutant]);
    for mutant in broken {
        // One at a time, on the first engine: what is checked is the checker.
        let order = Order::broken(parts.engines[0], seed, mutant);
        let seen = play(&parts, &[order], 1);
        judge::mutant(&mut report, &word(&mutant), seen.first().map(|(_, seen)| seen));
    }
    report.fact("seed", seed);
    report.fact("left_out", Value::from(parts.left_out.clone()));
    report.fact("seconds", watch.seconds());
    Ok(report)
}

/// What each world is to do.
fn orders(args: &Args, parts: &Parts, seed: u64, at_once: usize) -> Vec<Order> {
    let engines = parts.engines.len();
    let faults = args.faults.map(|faults| faults.div_ceil(engines as u64));
    let rounds = engines.div_ceil(at_once) as u64;
    let minutes = args.minutes.unwrap_or(MINUTES);
    let seconds = ((minutes * 60).saturating_sub(AROUND) / rounds).max(30);
    let order = |engine: &Engine| Order::of(*engine, seed, faults, faults.is_none().then_some(seconds));
    parts.engines.iter().map(order).collect()
}

/// A world needs what only root can have.
fn must_be_root() -> anyhow::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!("chaos makes network namespaces, mounts disks and drops packets: it needs root");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(minutes: Option<u64>, faults: Option<u64>) -> Args {
        Args {
            minutes,
            faults,
            engine: Vec::new(),
            seed: None,
            at_once: None,
            mutant: None,
            install: false,
        }
    }

    #[test]
    fn the_time_is_shared_among_those_that_come_one_after_the_other() {
        let parts = Parts::of(Engine::value_variants());
        let words = |args: &Args, at_once| orders(args, &parts, 7, at_once)[0].words();
        let told = |words: &[String], flag: &str| words.iter().skip_while(|word| *word != flag).nth(1).cloned();
        let short = words(&args(None, None), 2);
        assert_eq!(
            told(&short, "--seconds").as_deref(),
            Some("120"),
            "360 s in three rounds"
        );
        assert_eq!(told(&short, "--faults"), None);
        let long = words(&args(None, Some(1_000)), 2);
        assert_eq!(told(&long, "--faults").as_deref(), Some("200"));
        assert_eq!(told(&long, "--seconds"), None);
        assert_eq!(told(&long, "--seed").as_deref(), Some("7"));
    }

    #[test]
    fn names_are_those_of_the_program_of_worlds() {
        assert_eq!(word(&Engine::PostgresStandby), "postgres-standby");
        assert_eq!(word(&Mutant::IgnoresDropAt), "ignores-drop-at");
    }
}

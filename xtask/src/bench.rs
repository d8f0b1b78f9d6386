//! `bench`: the same work through this project, through the bare statements, and through what people would use instead.
//!
//! The programs that do it are in `bench/`, a workspace of its own: what is measured there is no part of this project.

mod aging;
mod built;
mod conditions;
mod contender;
mod document;
mod engine;
mod handoff;
mod held;
mod instructions;
mod lost;
mod pairs;
mod plan;
mod process;
mod renewals;
mod section;
mod series;
mod stage;
mod ticks;
mod winner;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use serde_json::json;

use crate::machine::Machine;
use crate::report::{Report, note};
use crate::run::{Stopwatch, root};
use built::Built;
use engine::{Engine, Kind};
use plan::Plan;
use section::{Section, Verdict};
use stage::Stage;

/// How long the machine is given to become quiet after the build: its load average falls by half in three quarters of a minute.
const LONGEST_REST: Duration = Duration::from_secs(600);

/// What the verb can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A short look, whose figures are not to be kept: written to `target/bench`.
    #[arg(long)]
    quick: bool,
    /// How many rounds of each run.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How many seconds each run takes.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Only these parts: written to `target/bench`.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Only these engines: written to `target/bench`.
    #[arg(long, value_enum, value_delimiter = ',')]
    engine: Vec<Kind>,
}

/// A part of it, and a section of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Pairs,
    Lost,
    Winner,
    Renewals,
    Handoff,
    Held,
    Ticks,
    Aging,
    Instructions,
}

const ALL: [Part; 9] = [
    Part::Pairs,
    Part::Lost,
    Part::Winner,
    Part::Renewals,
    Part::Handoff,
    Part::Held,
    Part::Ticks,
    Part::Aging,
    Part::Instructions,
];

impl Part {
    const fn title(self) -> &'static str {
        match self {
            Self::Pairs => "Acquire and release, uncontended",
            Self::Lost => "The lost tick",
            Self::Winner => "The winner beside 63 losers",
            Self::Renewals => "Renewal",
            Self::Handoff => "Hand-off to who waits",
            Self::Held => "Leases held",
            Self::Ticks => "64 pods ticking on one row",
            Self::Aging => "Renewals beside a long snapshot",
            Self::Instructions => "Instructions of a pair without a database",
        }
    }
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let watch = Stopwatch::start();
    let built = Built::build()?;
    note(format_args!("built in {} s", watch.seconds()));
    let watch = Stopwatch::start();
    let (kinds, parts) = (chosen(&args.engine, &Kind::ALL), chosen(&args.only, &ALL));
    let stage = stage(args, built, &kinds)?;
    let rest = if args.quick { Duration::ZERO } else { LONGEST_REST };
    let conditions = conditions::conditions(&stage, conditions::rest(rest)?)?;
    let (mut sections, mut samples) = (Vec::new(), Vec::new());
    for part in &parts {
        note(format_args!("{part:?}"));
        let section = match part {
            Part::Pairs => pairs::measure(&stage),
            Part::Lost => lost::measure(&stage),
            Part::Winner => winner::measure(&stage),
            Part::Renewals => renewals::measure(&stage),
            Part::Handoff => handoff::measure(&stage),
            Part::Held => held::measure(&stage),
            Part::Ticks => ticks::measure(&stage),
            Part::Aging => aging::measure(&stage).map(|(section, taken)| {
                samples = taken;
                section
            }),
            Part::Instructions => instructions::measure(&stage),
        };
        let mut section = section.unwrap_or_else(|error| Section::failed(&error));
        section.title = part.title();
        sections.push(section);
    }

    // What is kept is whole.
    let keep = !args.quick && args.only.is_empty() && args.engine.is_empty();
    let folder = root().join(if keep { "docs" } else { "target/bench" });
    let plot = if samples.is_empty() {
        None
    } else {
        aging::draw(&stage, &samples, &folder.join("benchmarks.svg"))?;
        Some("benchmarks.svg")
    };
    let text = document::document(&conditions, &sections, &args.command(), plot)?;
    let file = folder.join("benchmarks.md");
    fs::write(&file, text)?;
    Ok(report(&sections, &stage, conditions.busy, &file, watch))
}

fn report(sections: &[Section], stage: &Stage, busy: bool, file: &Path, watch: Stopwatch) -> Report {
    let mut report = Report::new(&["engine", "what", "over", "is", "aim"]);
    for verdict in sections.iter().flat_map(|section| &section.verdicts) {
        let Verdict { engine, what, .. } = verdict;
        report.row([
            json!(engine),
            json!(what),
            json!(verdict.against),
            json!(verdict.is_shown()),
            json!(verdict.aim()),
        ]);
        if !verdict.is_met() {
            report.miss(format!(
                "{engine}: {what}: {}, not {}",
                verdict.is_shown(),
                verdict.aim()
            ));
        }
    }
    if busy {
        report.miss("the machine had other work when it began");
    }
    for line in &stage.missing {
        report.miss(line.clone());
    }
    for section in sections.iter().filter(|section| section.is_failed) {
        report.miss(format!("{}: {}", section.title, section.left_out.concat()));
    }
    let shown = file.strip_prefix(root()).unwrap_or(file);
    report.fact("written", json!(shown));
    report.fact("seconds", watch.seconds());
    report.detail("sections", sections.iter().map(Section::to_json).collect::<Vec<_>>());
    report
}

impl Args {
    fn command(&self) -> String {
        let mut command = "cargo xtask bench".to_owned();
        if self.quick {
            command += " --quick";
        }
        command
    }
}

fn stage(args: &Args, built: Built, kinds: &[Kind]) -> anyhow::Result<Stage> {
    let machine = Machine::look();
    let (mut engines, mut missing) = (Vec::new(), Vec::new());
    for &kind in kinds {
        match Engine::start(kind, &machine) {
            Ok(engine) => engines.push(engine),
            Err(error) => missing.push(format!("{} is not here: {error:#}", kind.name())),
        }
    }
    ensure!(!engines.is_empty(), "there is no engine here: {}", missing.join("; "));
    missing.iter().for_each(note);
    let plan = if args.quick {
        Plan::quick()
    } else {
        Plan::full(args.rounds, args.seconds)
    };
    Ok(Stage {
        plan,
        built,
        engines,
        missing,
    })
}

/// All, if none is named.
fn chosen<T: Clone>(named: &[T], all: &[T]) -> Vec<T> {
    if named.is_empty() { all } else { named }.to_vec()
}

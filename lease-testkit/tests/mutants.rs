//! The suite is itself tested: each rule of `MemoryRepo` broken on purpose is noticed, and each case notices one.
//!
//! What fails where is kept in `mutants.md`. `LEASE_BLESS=1 cargo test -p lease-testkit --test mutants` writes it anew.

#![expect(clippy::unwrap_used, reason = "helpers of a test are a test too")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use std::{env, fs, panic, thread};

use lease_core::{MemoryRepo, Moment, Mutant};
use lease_testkit::{CASES, Harness, Runner, runners};

/// A store with one rule broken. Its tasks take turns and its clock is one of two, so each case ends the same way each
/// time.
struct Mutated(MemoryRepo);

/// How a store's clock goes on by itself.
#[derive(Clone, Copy)]
enum Time {
    /// Not at all: what happens at the very microsecond of an expiry shows.
    Still,
    /// By a microsecond whenever it is read: what needs time between two operations shows.
    Ticking,
}

thread_local! {
    static STORE: Cell<(Option<Mutant>, Time)> = const { Cell::new((None, Time::Still)) };
}

impl Harness for Mutated {
    type Repo = MemoryRepo;
    const LIMIT: Duration = Duration::from_secs(60);

    async fn open() -> Self {
        let (mutant, time) = STORE.get();
        let reads = AtomicU64::new(0);
        let repo = MemoryRepo::with_time(move || {
            let passed = match time {
                Time::Still => 0,
                Time::Ticking => reads.fetch_add(1, Ordering::SeqCst),
            };
            Moment::from_nanos(1 << 60) + Duration::from_micros(passed)
        });
        if let Some(mutant) = mutant {
            repo.break_rule(mutant);
        }
        Self(repo)
    }

    async fn client(&self) -> MemoryRepo {
        self.0.clone()
    }

    async fn step_clock(&self, by_us: i64) {
        self.0.step_clock(by_us);
    }

    fn run(case: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(case);
    }
}

#[test]
fn every_mutant_is_noticed_and_every_case_notices_one() {
    silence_panics();
    let failed = failed_by(None);
    assert!(
        failed.is_empty(),
        "the unbroken reference passes every case, but not {failed:?}"
    );

    let matrix = matrix();
    for (mutant, cases) in &matrix {
        assert!(!cases.is_empty(), "no case notices {mutant:?}: {}", mutant.says());
    }
    // A mutant that fails every case proves nothing about any of them.
    let telling = || matrix.iter().filter(|(_, cases)| cases.len() < CASES.len());
    for case in CASES {
        let name = format!("{}::{}", case.group, case.name);
        assert!(
            telling().any(|(_, cases)| cases.contains(&name)),
            "no mutant fails {name}"
        );
    }

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/mutants.md");
    let table = table(&matrix);
    if env::var_os("LEASE_BLESS").is_some() {
        fs::write(path, &table).unwrap();
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == table,
        "mutants.md is not what the suite does now; look at the change with LEASE_BLESS=1"
    );
}

/// Which cases fail for each mutant, computed on all processors.
fn matrix() -> BTreeMap<Mutant, Vec<String>> {
    let next = AtomicUsize::new(0);
    let matrix = Mutex::new(BTreeMap::new());
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(mutant) = Mutant::ALL.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let cases = failed_by(Some(*mutant));
                    matrix.lock().unwrap().insert(*mutant, cases);
                }
            });
        }
    });
    matrix.into_inner().unwrap()
}

fn failed_by(mutant: Option<Mutant>) -> Vec<String> {
    let fails = |runner: &Runner| {
        let run = runner.run;
        let fails_in = |time: Time| {
            // A thread of its own, so that whatever a panic leaves behind ends with it.
            let case = thread::Builder::new().name("mutant".to_owned()).spawn(move || {
                STORE.set((mutant, time));
                run();
            });
            case.unwrap().join().is_err()
        };
        fails_in(Time::Still) || fails_in(Time::Ticking)
    };
    let failed = runners::<Mutated>().into_iter().filter(fails);
    failed
        .map(|runner| format!("{}::{}", runner.case.group, runner.case.name))
        .collect()
}

/// The panics of cases that fail on purpose would bury the one that matters.
fn silence_panics() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().name() != Some("mutant") {
            report(info);
        }
    }));
}

fn table(matrix: &BTreeMap<Mutant, Vec<String>>) -> String {
    let mut text = format!(
        "# What the suite notices\n\n\
         Each of {} rules of `MemoryRepo`, broken on purpose, and which of {} cases fail then, by a clock that stands \
         still or one that ticks. Written by \
         `LEASE_BLESS=1 cargo test -p lease-testkit --test mutants`; without the variable the test compares.\n",
        matrix.len(),
        CASES.len(),
    );
    for (mutant, cases) in matrix {
        write!(text, "\n## {mutant:?}\n\n{}\n\n", mutant.says()).unwrap();
        if cases.len() == CASES.len() {
            text.push_str("- every case\n");
            continue;
        }
        for case in cases {
            writeln!(text, "- {case}").unwrap();
        }
    }
    text
}

//! `test`: finds or makes the servers, runs everything, and fails unless everything was run.

mod programs;
mod tally;

use std::io::{BufRead, BufReader, Write, pipe};
use std::process::Command;

use anyhow::bail;
use lease_testkit::CASES;
use lease_testkit::servers::Dialect;
use serde_json::json;

use crate::group::Group;
use crate::machine::{self, Machine};
use crate::report::{Report, note};
use crate::run::{Stopwatch, cargo, shown};
use crate::server::{self, Server};
use programs::Programs;
use tally::Tally;

/// What `test` can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Installs what is missing on a Debian machine, as root.
    #[arg(long)]
    install: bool,
    /// Only this engine's backend; may be repeated. Every engine's if left out.
    #[arg(long, value_enum)]
    engine: Vec<Engine>,
}

/// A database that has a backend here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    Postgres,
    Mysql,
    #[value(name = "mariadb")]
    MariaDb,
    Sqlite,
}

impl Engine {
    /// The crate whose conformance tests count.
    fn package(self) -> &'static str {
        match self {
            Self::Postgres => "lease-postgres",
            Self::Mysql | Self::MariaDb => "lease-mysql",
            Self::Sqlite => "lease-sqlite",
        }
    }

    /// The module of its conformance tests, where one crate is for two engines.
    fn module(self) -> &'static str {
        match self {
            Self::Postgres | Self::Sqlite => "",
            Self::Mysql => MYSQL,
            Self::MariaDb => "mariadb::",
        }
    }

    /// Its server. An embedded engine has none.
    fn server(self, machine: &Machine) -> anyhow::Result<Option<Server>> {
        Ok(match self {
            Self::Postgres => Some(server::postgres(machine)?),
            Self::Mysql => Some(server::mysql(Dialect::Mysql, machine)?),
            Self::MariaDb => Some(server::mysql(Dialect::MariaDb, machine)?),
            Self::Sqlite => None,
        })
    }
}

/// Ignored tests are those that need a server or root, and here they have both.
const TESTS: [&str; 9] = [
    "test",
    "--workspace",
    "--all-features",
    "--no-fail-fast",
    "--lib",
    "--bins",
    "--tests",
    "--examples",
    "--",
];

/// How the names of tests begin that are about servers in containers.
const CONTAINERS: &str = "a_container_";

/// What the paths of tests have that need MySQL.
const MYSQL: &str = "mysql::";

/// What the names of tests have that need PgBouncer.
const PGBOUNCER: &str = "pgbouncer";

/// What the names of tests have that need a cluster of MariaDB.
const GALERA: &str = "galera";

/// The examples in the docs are run apart, since one that is ignored is not even meant to compile.
const DOCTESTS: [&str; 5] = ["test", "--workspace", "--all-features", "--no-fail-fast", "--doc"];

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let total = Stopwatch::start();
    let mut report = Report::new(&["tests", "run", "failed", "ignored", "seconds"]);
    let machine = prepared(args.install)?;
    let engines = engines(args, &machine);
    let mut tests = cargo(TESTS);
    // They end with this function, and by themselves if we are killed.
    let mut servers = Vec::new();
    for engine in &engines {
        if let Some(server) = engine.server(&machine)? {
            tests.env(server.variable(), server.url());
            servers.push(server);
        }
    }
    tests.arg("--include-ignored");
    let mut left_out = Vec::new();
    if !machine.docker {
        tests.args(["--skip", CONTAINERS]);
        left_out.push("tests of containers, since there is no Docker engine");
    }
    if !server::has_mysql(&machine) {
        tests.args(["--skip", MYSQL]);
        left_out.push("tests of MySQL, since there is no Docker engine");
    }
    if !server::pgbouncer(&machine) {
        tests.args(["--skip", PGBOUNCER]);
        left_out.push("tests of PgBouncer, which has no image here");
    }
    if !server::galera(&machine) {
        tests.args(["--skip", GALERA]);
        left_out.push("tests of Galera, which has no image here");
    }
    if !left_out.is_empty() {
        report.fact("left_out", left_out.join("; "));
    }

    let watch = Stopwatch::start();
    let programs = Programs::build(&TESTS[..TESTS.len() - 1])?;
    report.row([json!("build"), json!(null), json!(null), json!(null), watch.seconds()]);
    let tally = streamed(&mut report, "tests", &mut tests, &programs)?;
    streamed(&mut report, "doctests", &mut cargo(DOCTESTS), &programs)?;

    for engine in engines {
        let (package, module) = (engine.package(), engine.module());
        let executed = tally.executed(&format!("{package}/conformance"), module, CASES);
        let what = format!("{package}: {module}conformance");
        if executed != CASES.len() {
            report.miss(format!("{what}: {executed} of {} cases were executed", CASES.len()));
        }
        report.row([json!(what), json!(executed), json!(null), json!(null), json!(null)]);
    }
    report.fact("cases", CASES.len());
    report.fact("seconds", total.seconds());
    Ok(report)
}

/// Those that were asked for; else all that this machine can have.
fn engines(args: &Args, machine: &Machine) -> Vec<Engine> {
    if !args.engine.is_empty() {
        return args.engine.clone();
    }
    let all = [Engine::Postgres, Engine::Mysql, Engine::MariaDb, Engine::Sqlite];
    let can_be_had = |engine: &Engine| *engine != Engine::Mysql || server::has_mysql(machine);
    all.into_iter().filter(can_be_had).collect()
}

/// The machine, with what the tests need.
pub(crate) fn prepared(install: bool) -> anyhow::Result<Machine> {
    let machine = Machine::look();
    note(&machine);
    if !machine.root {
        note("not root: tests that make network namespaces will fail");
    }
    let missing = machine.missing();
    if missing.is_empty() {
        return Ok(machine);
    }
    if !install {
        note(format_args!(
            "missing here: {} (use --install as root)",
            missing.join(", ")
        ));
        return Ok(machine);
    }
    machine::install(&missing)?;
    let machine = Machine::look();
    let still = machine.missing();
    if !still.is_empty() {
        bail!("installed, but still missing: {}", still.join(", "));
    }
    Ok(machine)
}

/// Runs tests and shows what they say as they say it.
fn streamed(report: &mut Report, what: &str, command: &mut Command, programs: &Programs) -> anyhow::Result<Tally> {
    note(format_args!("$ {}", shown(command)));
    let watch = Stopwatch::start();
    // Cargo names the program on standard error, and its tests answer on standard output: one pipe keeps the order.
    let (output, input) = pipe()?;
    let tests = Group::spawn(command.stdout(input.try_clone()?).stderr(input))?;
    // The command holds our copies of the pipe's writing end; the output ends once they are closed.
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut tally = Tally::default();
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        std::io::stderr().write_all(&line)?;
        tally.line(String::from_utf8_lossy(&line).trim_end(), programs);
        line.clear();
    }
    let ok = tests.wait()?.success();
    report.row([
        json!(what),
        json!(tally.run()),
        json!(tally.failed),
        json!(tally.ignored),
        watch.seconds(),
    ]);
    if !ok || tally.failed > 0 {
        report.miss(format!("{what}: {} failed; see above", tally.failed));
    }
    if tally.ignored > 0 {
        report.miss(format!("{what}: {} were ignored", tally.ignored));
    }
    Ok(tally)
}

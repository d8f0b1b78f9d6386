//! `release`: what a release needs beside `test` and `check`, and what takes too long for each change.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::features::{Package, packages};
use crate::report::{Report, note};
use crate::run::{self, Stopwatch, cargo, root};
use crate::tools;

/// What `release` can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Builds cargo-semver-checks if it is missing and there is a release to compare with.
    #[arg(long)]
    install: bool,
}

/// The verb. All parts are done, also after one has failed.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let total = Stopwatch::start();
    let mut report = Report::new(&["what", "result", "seconds"]);
    let crates: Vec<Package> = packages()?.into_iter().filter(Package::is_published).collect();
    let crates: Vec<&str> = crates.iter().map(|package| &*package.name).collect();
    part(&mut report, "packages", || packaged(&crates));
    part(&mut report, "oldest dependencies", || with_oldest_dependencies(&crates));
    part(&mut report, "interface", || as_the_version_says(args, &crates));
    report.fact("crates", crates.join(" "));
    report.fact("seconds", total.seconds());
    Ok(report)
}

/// What became of a part.
enum Word {
    Ok,
    Failed,
    /// There is nothing to do yet.
    None(&'static str),
}

fn part(report: &mut Report, name: &str, run: impl FnOnce() -> anyhow::Result<Word>) {
    let watch = Stopwatch::start();
    let result = run();
    let word = match &result {
        Ok(Word::Ok) => "ok",
        Ok(Word::None(why)) => why,
        Ok(Word::Failed) | Err(_) => "FAILED",
    };
    report.row([json!(name), json!(word), watch.seconds()]);
    match result {
        Ok(Word::Failed) => report.miss(format!("{name}: see above")),
        Err(error) => report.miss(format!("{name}: {error:#}")),
        Ok(Word::Ok | Word::None(_)) => {}
    }
}

fn word(succeeded: bool) -> Word {
    if succeeded { Word::Ok } else { Word::Failed }
}

fn of<'a>(command: &'a mut Command, crates: &[&str]) -> &'a mut Command {
    command.args(crates.iter().flat_map(|name| ["--package", name]))
}

/// Each crate is packed as it would be published, in the order in which they need each other, and built from its package.
fn packaged(crates: &[&str]) -> anyhow::Result<Word> {
    let mut command = cargo(["package", "--allow-dirty"]);
    Ok(word(run::succeeds(of(&mut command, crates))?))
}

/// The oldest versions that the manifests allow are enough to compile: nothing is used that came later.
fn with_oldest_dependencies(crates: &[&str]) -> anyhow::Result<Word> {
    let place = root().join("target/oldest");
    let tree = place.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let listed = run::output(Command::new("git").args(["ls-files", "-z"]).current_dir(root()))?;
    for path in String::from_utf8(listed)?.split_terminator('\0') {
        let (from, to) = (root().join(path), tree.join(path));
        // A file that is gone but not yet committed so.
        if from.is_file() {
            fs::create_dir_all(to.parent().unwrap_or(&tree))?;
            fs::copy(from, to)?;
        }
    }
    let mut update = cargo(["update", "-Z", "direct-minimal-versions"]);
    // The only cargo that can do it is a nightly one, or one that is told to be.
    run::must(update.current_dir(&tree).env("RUSTC_BOOTSTRAP", "1"))?;
    let mut check = cargo(["check", "--all-features", "--lib", "--bins"]);
    check.current_dir(&tree).env("CARGO_TARGET_DIR", place.join("target"));
    Ok(word(run::succeeds(of(&mut check, crates))?))
}

/// What changed since the last release is what the version allows to change.
fn as_the_version_says(args: &Args, crates: &[&str]) -> anyhow::Result<Word> {
    let tags = ["tag", "--list", "v*", "--sort=-version:refname"];
    let tags = run::output(Command::new("git").args(tags).current_dir(root()))?;
    let tags = String::from_utf8(tags)?;
    let Some(last) = tags.lines().next() else {
        note("no tag `v..`: this is the first release, and its interface is the one to compare the next with");
        return Ok(Word::None("no release yet"));
    };
    tools::SEMVER.ensure(args.install)?;
    let mut command = tools::SEMVER.command();
    command.args(["--baseline-rev", last, "--all-features"]);
    Ok(word(run::succeeds(of(&mut command, crates))?))
}

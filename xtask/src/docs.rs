//! `docs`: the book as web pages, with the interfaces of the crates beside it.
//!
//! The pages are laid out as they lie in the repository, with the files they link to, so that every link that leads somewhere
//! there leads somewhere in the book.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::json;

use crate::markdown::{links, resolved};
use crate::report::Report;
use crate::run::{self, Stopwatch, cargo, root};
use crate::tidy::{SUMMARY, chapters};
use crate::tools;

/// What `docs` can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Builds mdbook if it is missing, which takes minutes.
    #[arg(long)]
    install: bool,
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let total = Stopwatch::start();
    let mut report = Report::new(&["part", "seconds"]);
    tools::MDBOOK.ensure(args.install)?;
    let book = root().join("target/book");
    if book.exists() {
        fs::remove_dir_all(&book)?;
    }
    let watch = Stopwatch::start();
    let pages = lay_out(&book)?;
    run::must(tools::MDBOOK.command().arg("build").arg(&book))?;
    report.row([json!("book"), watch.seconds()]);

    let watch = Stopwatch::start();
    run::must(&mut cargo(["doc", "--no-deps", "--workspace", "--all-features"]))?;
    copy(&root().join("target/doc"), &book.join("html").join(INTERFACES))?;
    report.row([json!("interfaces"), watch.seconds()]);
    report.fact("pages", pages);
    report.fact("begin", "target/book/html/index.html");
    report.fact("seconds", total.seconds());
    Ok(report)
}

/// Where in the book the interfaces are.
const INTERFACES: &str = "api";

/// Writes what mdbook is to build. Answers how many pages there are.
fn lay_out(book: &Path) -> anyhow::Result<usize> {
    let source = book.join("src");
    fs::create_dir_all(&source)?;
    fs::copy(root().join("docs/book.toml"), book.join("book.toml"))?;
    let summary = read(SUMMARY)?;
    let chapters = chapters(&summary);
    // From the root: there the summary lies in the book.
    let moved = rewritten(&summary, |target| resolved(SUMMARY, target).map(|(path, _)| path));
    fs::write(source.join("SUMMARY.md"), moved)?;
    for page in &chapters {
        let text = read(page)?;
        for link in links(&text) {
            let target = resolved(page, link.target).map(|(path, _)| path);
            // What is no page is copied. A folder is none of these.
            if let Some(path) = target.filter(|path| !path.ends_with(".md") && root().join(path).is_file()) {
                let to = source.join(&path);
                fs::create_dir_all(to.parent().unwrap_or(&source))?;
                fs::copy(root().join(&path), to)?;
            }
        }
        let to = source.join(page);
        fs::create_dir_all(to.parent().unwrap_or(&source))?;
        fs::write(to, rewritten(&text, |target| in_the_book(page, target)))?;
    }
    Ok(chapters.len())
}

fn read(path: &str) -> anyhow::Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| path.to_owned())
}

/// The text with some targets of its links replaced.
fn rewritten(text: &str, new: impl Fn(&str) -> Option<String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut copied = 0;
    for link in links(text) {
        if let Some(target) = new(link.target) {
            result.push_str(&text[copied..link.at]);
            result.push_str(&target);
            copied = link.at + link.target.len();
        }
    }
    result.push_str(&text[copied..]);
    result
}

/// A link to a crate's docs or folder, which in the book is one to its interface; and one to the summary, which is on every page.
fn in_the_book(page: &str, target: &str) -> Option<String> {
    let (path, heading) = resolved(page, target)?;
    let up = "../".repeat(page.matches('/').count());
    let name = match path.strip_suffix("/src/docs.md") {
        Some(name) => name,
        None if path == SUMMARY => return Some(format!("{up}index.html")),
        None if root().join(&path).join("Cargo.toml").is_file() => &path,
        None => return None,
    };
    let heading = heading.map(|heading| format!("#{heading}")).unwrap_or_default();
    Some(format!(
        "{up}{INTERFACES}/{}/index.html{heading}",
        name.replace('-', "_")
    ))
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_crates_lead_to_their_interfaces() {
        let page = "docs/getting-started/postgres.md";
        let of = |target| in_the_book(page, target);
        assert_eq!(
            of("../../lease-postgres/src/docs.md#failover").as_deref(),
            Some("../../api/lease_postgres/index.html#failover")
        );
        assert_eq!(
            of("../../lease-core").as_deref(),
            Some("../../api/lease_core/index.html")
        );
        assert_eq!(of("next.md"), None);
        assert_eq!(of("../../examples/k8s/grants.sql"), None);
    }

    #[test]
    fn only_the_targets_of_links_are_replaced() {
        let text = "[a](a.md) a.md `[a](a.md)` [b](b.md)";
        let new = |target: &str| (target == "a.md").then(|| "c.md".to_owned());
        assert_eq!(rewritten(text, new), "[a](c.md) a.md `[a](a.md)` [b](b.md)");
    }

    #[test]
    fn the_book_can_be_laid_out() {
        let folder = tempfile::tempdir().unwrap();
        assert!(lay_out(folder.path()).unwrap() > 30);
        let summary = fs::read_to_string(folder.path().join("src/SUMMARY.md")).unwrap();
        assert!(
            summary.contains("](docs/guarantees.md)") && summary.contains("](README.md)"),
            "{summary}"
        );
    }
}

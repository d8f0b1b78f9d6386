//! The book is whole: its summary has every page, its links stay in it, and its Rust is compiled.

use std::collections::BTreeSet;

use super::{File, Finding};
use crate::markdown::{links, resolved, rust_blocks};

/// The list of chapters.
pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";

/// Where the pages' Rust is compiled: each is included there as docs.
const COMPILED: &str = "examples/src/lib.rs";

/// A page whose blocks are the files of a crate, which a test of that crate compares.
const IS_A_CRATE: &str = "docs/new-backend.md";

/// What is missing in the book.
pub(super) fn holes(files: &[File]) -> Vec<Finding> {
    let by_path = |path: &str| files.iter().find(|file| file.path == path);
    let Some(summary) = by_path(SUMMARY) else {
        return Vec::new();
    };
    let chapters = chapters(&summary.text);
    let compiled = by_path(COMPILED).map_or("", |file| &file.text);
    let mut findings = Vec::new();
    for page in files.iter().filter(|file| file.is(&[".md"])) {
        let is_chapter = chapters.contains(&page.path);
        if page.path.starts_with("docs/") && page.path != SUMMARY && !is_chapter {
            findings.push(page.finding(1, format!("is not in {SUMMARY}")));
        }
        if is_chapter {
            findings.extend(leaving(page, &chapters));
        }
        // A crate's own page is part of its docs.
        let own = page
            .path
            .strip_suffix("README.md")
            .map(|folder| format!("{folder}src/lib.rs"));
        let own = own
            .and_then(|lib| by_path(&lib))
            .is_some_and(|lib| lib.text.contains("\"../README.md\""));
        findings.extend(uncompiled(page, is_chapter && !own, compiled));
    }
    findings
}

/// The paths of all chapters, from the root of the workspace.
pub(crate) fn chapters(summary: &str) -> BTreeSet<String> {
    let links = links(summary).into_iter();
    let resolved = links.filter_map(|link| resolved(SUMMARY, link.target));
    resolved.map(|(path, _)| path).collect()
}

/// Links to pages that are no chapters. The docs of a crate are part of its interface, which the book has beside it.
fn leaving(page: &File, chapters: &BTreeSet<String>) -> Vec<Finding> {
    let leaves = |target: &str| {
        let (path, _) = resolved(&page.path, target)?;
        let is_page = path.ends_with(".md") && !path.ends_with("/src/docs.md") && path != SUMMARY;
        (is_page && !chapters.contains(&path)).then_some(path)
    };
    let found = links(&page.text).into_iter().filter_map(|link| {
        let path = leaves(link.target)?;
        Some(page.finding(link.line, format!("links to {path}, which is not in {SUMMARY}")))
    });
    found.collect()
}

fn uncompiled(page: &File, is_chapter: bool, compiled: &str) -> Vec<Finding> {
    let blocks = rust_blocks(&page.text);
    let ignored = blocks
        .iter()
        .filter(|(_, says)| says.contains(concat!("ign", "ore")))
        .map(|(line, _)| {
            page.finding(
                *line,
                "an example that is not compiled may be wrong: `no_run` at the least",
            )
        });
    let mut findings: Vec<Finding> = ignored.collect();
    let included = format!("\"../../{}\"", page.path);
    if let Some((line, _)) = blocks.first()
        && is_chapter
        && page.path != IS_A_CRATE
        && !compiled.contains(&included)
    {
        findings.push(page.finding(
            *line,
            format!("Rust that nobody compiles: include the page in {COMPILED}"),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sample;

    fn found(pages: &[(&str, &str)], compiled: &str) -> Vec<String> {
        let mut files = vec![
            sample(SUMMARY, "[a](../README.md)\n- [b](b.md)\n"),
            sample(COMPILED, compiled),
        ];
        files.extend(pages.iter().map(|(path, text)| sample(path, *text)));
        holes(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn page_that_is_in_no_chapter_is_found() {
        assert_eq!(
            found(&[("docs/c.md", "# C")], ""),
            ["docs/c.md:1: is not in docs/SUMMARY.md"]
        );
        assert!(
            found(
                &[("docs/b.md", "# B"), ("README.md", ""), ("lease-x/README.md", "")],
                ""
            )
            .is_empty()
        );
    }

    #[test]
    fn link_out_of_the_book_is_found() {
        let text = "[a](../lease-x/notes.md) [b](../lease-x/src/docs.md) [c](../README.md) [d](../x.rs)";
        let found = found(&[("docs/b.md", text)], "");
        assert_eq!(
            found,
            ["docs/b.md:1: links to lease-x/notes.md, which is not in docs/SUMMARY.md"]
        );
    }

    #[test]
    fn rust_that_nobody_compiles_is_found() {
        let page = ("docs/b.md", "# B\n```rust\n1;\n```\n");
        assert_eq!(found(&[page], "").len(), 1);
        assert!(found(&[page], "include_str!(\"../../docs/b.md\")").is_empty());
        let readme = ("README.md", page.1);
        assert_eq!(found(&[readme], "").len(), 1);
        assert!(found(&[readme, ("src/lib.rs", "include_str!(\"../README.md\")")], "").is_empty());
        let ignored = concat!("```rust,ign", "ore\n1;\n```\n");
        assert_eq!(found(&[("lease-x/a.md", ignored)], "").len(), 1);
    }
}

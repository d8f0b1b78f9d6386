//! Relative links in Markdown lead somewhere, and to a heading that is there.

use std::collections::{HashMap, HashSet};

use super::{File, Finding};
use crate::markdown::{headings, links, resolved};

/// The headings of every page, by its path.
pub(super) type Headings = HashMap<String, HashSet<String>>;

/// The headings of these files.
pub(super) fn of_all(files: &[File]) -> Headings {
    let pages = files.iter().filter(|file| file.is(&[".md"]));
    pages.map(|page| (page.path.clone(), headings(&page.text))).collect()
}

/// Links whose target is not `there`, or is no heading of its page.
pub(super) fn broken(file: &File, headings: &Headings, there: impl Fn(&str) -> bool) -> Vec<Finding> {
    if !file.is(&[".md"]) {
        return Vec::new();
    }
    let is_broken = |target: &str| {
        let Some((path, heading)) = resolved(&file.path, target) else {
            return false;
        };
        let lacks = |heading: &String| headings.get(&path).is_some_and(|page| !page.contains(heading));
        // A crate's docs may link to an item by what rustdoc calls it.
        (path != file.path && !there(&path)) || heading.as_ref().is_some_and(lacks)
    };
    let bad = links(&file.text).into_iter().filter(|link| is_broken(link.target));
    bad.map(|link| file.finding(link.line, format!("the link to {} leads nowhere", link.target)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sample;

    fn found(text: &str) -> Vec<usize> {
        let there = |path: &str| ["README.md", "docs/adr/0001-tenure.md"].contains(&path);
        let page = sample("docs/guarantees.md", text);
        let other = sample("docs/adr/0001-tenure.md", "# A part\n");
        let findings = broken(&page, &of_all(&[sample(&page.path, text), other]), there);
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn link_to_nothing_is_found() {
        assert_eq!(found("see\n[this](adr/0009-gone.md)"), [2]);
        assert_eq!(found("[`code`](gone.md) and [b](gone.rs#part)"), [1, 1]);
    }

    #[test]
    fn link_to_a_heading_that_is_gone_is_found() {
        assert_eq!(found("[a](adr/0001-tenure.md#another) [b](#gone)"), [1, 1]);
    }

    #[test]
    fn links_to_files_to_elsewhere_and_to_items_are_fine() {
        let text = "# Here\n[a](adr/0001-tenure.md#a-part) [b](../README.md) [c](#here)";
        assert_eq!(found(text), [0; 0]);
        assert_eq!(found("[a](https://example.com/x.md) [b](mailto:a@example.com)"), [0; 0]);
        assert_eq!(found("[`Repo`](lease_core::Repo) [c](Repo)"), [0; 0]);
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(found("`[a](gone.md)`\n```\n[a](gone.md)\n```\n"), [0; 0]);
    }
}

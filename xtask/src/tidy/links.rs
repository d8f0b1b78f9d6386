//! Relative links in Markdown lead somewhere.

use super::{File, Finding};

/// Links whose target is not `there`.
pub(super) fn broken(file: &File, there: impl Fn(&str) -> bool) -> Vec<Finding> {
    if !file.is(&[".md"]) {
        return Vec::new();
    }
    let mut in_code = false;
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let targets = targets(line).filter_map(|target| Some((target, resolved(&file.path, target)?)));
            let missing = targets.filter(|(_, path)| !there(path));
            findings
                .extend(missing.map(|(target, _)| file.finding(number, format!("the link to {target} leads nowhere"))));
        }
    }
    findings
}

/// What stands in the parentheses of `[..](..)`, outside of code spans.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    // Every second part lies between two backticks.
    let text = line.split('`').step_by(2);
    // A link's text may itself be code: then its closing bracket begins the next part of the text.
    text.flat_map(|part| part.split("](").skip(1))
        .filter_map(|rest| rest.split([')', ' ']).next())
}

/// The path from the root of the workspace, if the link is a relative one to a file.
fn resolved(from: &str, target: &str) -> Option<String> {
    let path = target.split('#').next().unwrap_or_default();
    // A crate's docs are also read by rustdoc, where an item is a link's target.
    let is_item = path.contains("::") || !path.contains(['.', '/']);
    if path.is_empty() || target.contains("://") || target.starts_with("mailto:") || is_item {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sample;

    fn found(text: &str) -> Vec<usize> {
        let there = |path: &str| ["README.md", "docs/adr/0001-tenure.md"].contains(&path);
        let findings = broken(&sample("docs/guarantees.md", text), there);
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn link_to_nothing_is_found() {
        assert_eq!(found("see\n[this](adr/0009-gone.md)"), [2]);
        assert_eq!(found("[`code`](gone.md) and [b](gone.rs#part)"), [1, 1]);
    }

    #[test]
    fn links_to_files_to_elsewhere_and_to_items_are_fine() {
        assert_eq!(
            found("[a](adr/0001-tenure.md#part) [b](../README.md) [c](#part)"),
            [0; 0]
        );
        assert_eq!(found("[a](https://example.com/x.md) [b](mailto:a@example.com)"), [0; 0]);
        assert_eq!(found("[`Repo`](lease_core::Repo) [c](Repo)"), [0; 0]);
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(found("`[a](gone.md)`\n```\n[a](gone.md)\n```\n"), [0; 0]);
    }
}

//! What of Markdown the house needs to know: links, headings, blocks of code.

use std::collections::{HashMap, HashSet};

/// Where a link leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link<'a> {
    /// Its line, counted from 1.
    pub(crate) line: usize,
    /// Where its target begins, in bytes.
    pub(crate) at: usize,
    /// What stands in the parentheses of `[..](..)`.
    pub(crate) target: &'a str,
}

/// The lines outside of blocks of code, each with its number and its place in bytes.
fn prose(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut in_code = false;
    let mut at = 0;
    let lines = text.split_inclusive('\n').enumerate().map(move |(index, line)| {
        let begins = at;
        at += line.len();
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        (!in_code && !fence).then_some((index + 1, begins, line))
    });
    lines.flatten()
}

/// The links outside of code.
pub(crate) fn links(text: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (number, begins, line) in prose(text) {
        let mut at = begins;
        // Every second part lies between two backticks. A link's text may itself be code: then its closing bracket begins the
        // next part of the text.
        for (part, is_text) in line.split('`').zip([true, false].into_iter().cycle()) {
            if is_text {
                links.extend(part.match_indices("](").map(|(found, opening)| {
                    let from = found + opening.len();
                    let target = part[from..].split([')', ' ', '\n']).next().unwrap_or_default();
                    Link {
                        line: number,
                        at: at + from,
                        target,
                    }
                }));
            }
            at += part.len() + 1;
        }
    }
    links
}

/// The path from the root of the workspace, and the heading, of a link to a file of ours.
pub(crate) fn resolved(from: &str, target: &str) -> Option<(String, Option<String>)> {
    let (path, heading) = match target.split_once('#') {
        Some((path, heading)) => (path, Some(heading.to_owned())),
        None => (target, None),
    };
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    if path.is_empty() {
        return Some((from.to_owned(), heading));
    }
    // A crate's docs are also read by rustdoc, where an item is a link's target.
    if path.contains("::") || !path.contains(['.', '/', '-']) {
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
    Some((parts.join("/"), heading))
}

/// What the headings of a page are called in links to them.
pub(crate) fn headings(text: &str) -> HashSet<String> {
    let mut times = HashMap::<String, usize>::new();
    let headings = prose(text).filter_map(|(_, _, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then(|| title.trim())
    });
    let name = headings.map(|title| {
        let letters = title.to_lowercase();
        let letters = letters.chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            letter => (letter.is_alphanumeric() || matches!(letter, '-' | '_')).then_some(letter),
        });
        let name: String = letters.collect();
        let count = times.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            more => format!("{name}-{}", more - 1),
        }
    });
    name.collect()
}

/// What the openings of Rust's blocks say after the dashes, with their lines: `rust`, `rust,no_run`.
pub(crate) fn rust_blocks(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut blocks = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(says) = line.trim_start().strip_prefix("```") {
            in_code = !in_code;
            if in_code && says.split(',').any(|word| word.trim() == "rust") {
                blocks.push((index + 1, says));
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_where_they_are_and_not_in_code() {
        let text = "a [b](c.md) `[x](y.md)`\n```\n[x](y.md)\n```\n[`d`](e.rs#f) and [g](h i)";
        let links = links(text);
        let found: Vec<(usize, &str)> = links.iter().map(|link| (link.line, link.target)).collect();
        assert_eq!(found, [(1, "c.md"), (5, "e.rs#f"), (5, "h")]);
        for link in links {
            assert!(text[link.at..].starts_with(link.target));
        }
    }

    #[test]
    fn targets_are_resolved_from_their_page() {
        let of = |target| resolved("docs/adr/a.md", target);
        assert_eq!(of("../b.md#c"), Some(("docs/b.md".into(), Some("c".into()))));
        assert_eq!(of("#c"), Some(("docs/adr/a.md".into(), Some("c".into()))));
        assert_eq!(of("../../lease-core"), Some(("lease-core".into(), None)));
        assert_eq!(of("https://example.com/x.md"), None);
        assert_eq!(of("lease_core::Repo"), None);
        assert_eq!(of("Repo"), None);
    }

    #[test]
    fn headings_are_called_as_browsers_of_repositories_call_them() {
        let found = headings("# What's `new`?\n## A-b c_d\n```\n# no\n```\n#no\n## A-b c_d\n");
        let expected = ["whats-new", "a-b-c_d", "a-b-c_d-1"];
        assert_eq!(found, expected.map(String::from).into());
    }

    #[test]
    fn blocks_of_rust_are_told_from_others() {
        let text = "```rust,no_run\nx\n```\n```sql\nx\n```\n   ```rust\nx\n   ```\n";
        assert_eq!(rust_blocks(text), [(1, "rust,no_run"), (7, "rust")]);
    }
}

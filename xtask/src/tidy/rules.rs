//! The rules that look at one file, most of them at one line at a time.

use super::{File, Finding};

/// Finds what breaks one rule in one file.
pub(super) type Rule = fn(&File) -> Vec<Finding>;

/// All of them.
pub(super) const ALL: &[Rule] = &[
    ignored_without_reason,
    marks,
    ignored_insert_errors,
    banners,
    unfinished,
    sleeping_cases,
    hosts,
    machine_paths,
    outside_the_tree,
    decision_title,
];

/// The findings of a rule that judges lines: a message for each bad one.
fn by_line(file: &File, message: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let findings = file
        .lines()
        .map(|(number, line)| Some(file.finding(number, message(line)?)));
    findings.flatten().collect()
}

/// The findings of a rule that forbids texts: the first one in each line.
fn forbids(file: &File, texts: &[&str], why: &str) -> Vec<Finding> {
    by_line(file, |line| {
        let text = texts.iter().find(|text| line.contains(**text))?;
        Some(format!("`{text}`: {why}"))
    })
}

/// An ignored test shows its reason where the tests are run.
fn ignored_without_reason(file: &File) -> Vec<Finding> {
    if !file.is(&[".rs"]) {
        return Vec::new();
    }
    let bare = concat!("#[ign", "ore]");
    by_line(file, |line| {
        let is_code = !line.trim_start().starts_with("//");
        let message = "an ignored test says why: `#[ignore = \"needs ..\"]`".to_owned();
        (is_code && line.contains(bare)).then_some(message)
    })
}

/// What is left to do is an issue, not a mark.
fn marks(file: &File) -> Vec<Finding> {
    if !file.is(&[".rs", ".md", ".toml", ".sh", ".sql"]) {
        return Vec::new();
    }
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("HA", "CK"),
    ];
    by_line(file, |line| {
        let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let mark = words.find(|word| marks.contains(word))?;
        Some(format!("`{mark}`: finish it, or file an issue"))
    })
}

/// On MySQL that statement hides every error of an insert, not only a duplicate.
fn ignored_insert_errors(file: &File) -> Vec<Finding> {
    let statement = concat!("INSERT IGN", "ORE");
    if !file.is(&[".rs", ".sql"]) {
        return Vec::new();
    }
    by_line(file, |line| {
        let is_there = line.to_uppercase().contains(statement);
        is_there.then(|| format!("`{statement}` hides every error: insert plainly and read the error"))
    })
}

/// A comment is a sentence. A file that needs banners to be found one's way in is too long.
fn banners(file: &File) -> Vec<Finding> {
    if !file.is(&[".rs", ".toml", ".sh", ".sql", ".ci/run"]) {
        return Vec::new();
    }
    const MARKS: [char; 7] = ['=', '-', '*', '#', '~', '/', '\u{2500}'];
    let opening = if file.is(&[".rs"]) {
        "//"
    } else if file.is(&[".sql"]) {
        "--"
    } else {
        "#"
    };
    let run = |letters: &mut dyn Iterator<Item = char>, mark| letters.take_while(|letter| *letter == mark).count() >= 4;
    by_line(file, |line| {
        let comment = line.trim().strip_prefix(opening)?;
        // A comment's own marks are no banner: `///`, `//!`, `##`.
        let text = comment.strip_prefix(['/', '!', '#']).unwrap_or(comment).trim();
        let is_banner = |mark: &char| run(&mut text.chars(), *mark) || run(&mut text.chars().rev(), *mark);
        let message = "a banner: say it in a sentence, or split the file".to_owned();
        MARKS.iter().any(is_banner).then_some(message)
    })
}

/// Main has no holes that panic.
fn unfinished(file: &File) -> Vec<Finding> {
    let holes = [concat!("to", "do!("), concat!("unimpl", "emented!(")];
    if file.is(&[".rs"]) {
        forbids(file, &holes, "finish it, or leave it out")
    } else {
        Vec::new()
    }
}

/// A conformance case moves time by its harness, so that it is fast and can't be late.
fn sleeping_cases(file: &File) -> Vec<Finding> {
    let sleeps = [concat!("thread::", "sleep"), concat!("time::", "sleep")];
    let is_case = file.path.starts_with("lease-testkit/src/cases");
    if is_case {
        forbids(file, &sleeps, "a case moves time by its harness")
    } else {
        Vec::new()
    }
}

/// Where packages and images come from is the machine's own setting.
fn hosts(file: &File) -> Vec<Finding> {
    let hosts = [
        concat!("crates", ".io"),
        concat!("docker", ".io"),
        concat!("docker", ".com"),
        concat!("ghcr", ".io"),
        concat!("quay", ".io"),
        concat!("debian", ".org"),
        concat!("postgresql", ".org/pub"),
        concat!("pypi", ".org"),
        concat!("npmjs", ".org"),
    ];
    forbids(
        file,
        &hosts,
        "name no host that packages come from: it is the machine's setting",
    )
}

/// A path of the machine that a file was written on is nobody else's.
fn machine_paths(file: &File) -> Vec<Finding> {
    let paths = [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/")];
    by_line(file, |line| {
        let starts_there = |path: &&&str| {
            line.match_indices(**path).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|letter| letter.is_alphanumeric() || "_-.}>*".contains(letter))
            })
        };
        let path = paths.iter().find(starts_there)?;
        Some(format!("`{path}`: a path of one machine"))
    })
}

/// A clone is complete.
fn outside_the_tree(file: &File) -> Vec<Finding> {
    forbids(file, &[concat!("../", "shared")], "not in a clone of this repository")
}

/// Decisions are found by number.
fn decision_title(file: &File) -> Vec<Finding> {
    let Some(name) = file.path.strip_prefix("docs/adr/").filter(|_| file.is(&[".md"])) else {
        return Vec::new();
    };
    let number = name.split('-').next().unwrap_or_default();
    let is_number = number.len() == 4 && number.bytes().all(|digit| digit.is_ascii_digit());
    let first = file.text.lines().next().unwrap_or_default();
    if is_number && first.starts_with(&format!("# {number}: ")) {
        Vec::new()
    } else {
        vec![file.finding(1, "a decision is `NNNN-title.md` and begins with `# NNNN: Title`")]
    }
}

#[cfg(test)]
mod tests;

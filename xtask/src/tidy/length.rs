//! A file that is too long to read in one go has a reason to be.

use super::{File, Finding};

/// More lines than this need a reason.
const MAX_LINES: usize = 450;

/// Files that are longer, and why they are not cut in two.
const LONG: &[(&str, &str)] = &[
    ("docs/benchmarks.md", "written by a command: all tables of one run"),
    (
        "docs/new-backend.md",
        "its blocks are a whole crate, which is to be read from the top to the end",
    ),
    (
        "lease-core/src/name.rs",
        "five small types of one kind, and the tests that hold for all of them",
    ),
    (
        "lease-testkit/mutants.md",
        "written by a test: each mutant with the cases that notice it",
    ),
];

/// A long file without a reason.
pub(super) fn too_long(file: &File) -> Option<Finding> {
    let lines = file.lines().count();
    let is_ours = file.is(&[".rs", ".md", ".sql", ".sh", ".toml"]);
    if !is_ours || lines <= MAX_LINES || reason(&file.path).is_some() {
        return None;
    }
    let message = format!("{lines} lines, more than {MAX_LINES}: split it, or say why not in xtask/src/tidy/length.rs");
    Some(file.finding(MAX_LINES + 1, message))
}

/// A reason whose file is gone or short again.
pub(super) fn unneeded(files: &[File]) -> impl Iterator<Item = Finding> {
    let needed = |path: &str| {
        let mut long = files.iter().filter(|file| file.lines().count() > MAX_LINES);
        long.any(|file| file.path == path)
    };
    let stale = LONG.iter().filter(move |(path, _)| !needed(path));
    stale.map(|(path, _)| Finding {
        path: (*path).to_owned(),
        line: 1,
        message: format!("is not longer than {MAX_LINES} lines: take it off the list in xtask/src/tidy/length.rs"),
    })
}

fn reason(path: &str) -> Option<&'static str> {
    LONG.iter().find(|(long, _)| *long == path).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sample;

    #[test]
    fn long_file_needs_a_reason() {
        let found = too_long(&sample("a.rs", "x\n".repeat(MAX_LINES + 1))).unwrap();
        assert_eq!(found.line, MAX_LINES + 1);
        assert_eq!(too_long(&sample("a.rs", "x\n".repeat(MAX_LINES))), None);
        assert_eq!(too_long(&sample("a.svg", "x\n".repeat(MAX_LINES + 1))), None);
    }

    #[test]
    fn reason_is_taken_off_the_list_with_its_cause() {
        assert_eq!(unneeded(&[]).count(), LONG.len());
        let long = LONG.iter().map(|(path, _)| sample(path, "x\n".repeat(MAX_LINES + 1)));
        assert_eq!(unneeded(&long.collect::<Vec<_>>()).count(), 0);
    }
}

//! The page `docs/new-backend.md` is this crate: its blocks are these files, letter by letter.
//!
//! With `LEASE_BLESS=1` the files are written from the page.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const PAGE: &str = include_str!("../../../docs/new-backend.md");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The files that the page has, each the blocks that follow a line with nothing but its path.
fn files() -> BTreeMap<&'static str, String> {
    let mut files = BTreeMap::<&str, String>::new();
    let mut parts = PAGE.split("\n```");
    let mut text = parts.next().unwrap();
    while let Some(block) = parts.next() {
        let (_, code) = block.split_once('\n').unwrap();
        let path = text.trim_end().lines().last().unwrap_or_default().trim_matches('`');
        if path.starts_with("examples/folder-backend/") {
            let file = files.entry(path).or_default();
            if !file.is_empty() {
                file.push('\n');
            }
            file.push_str(code);
            file.push('\n');
        }
        text = parts.next().expect("each block has its end");
    }
    files
}

#[test]
fn the_page_has_every_file_of_the_crate_letter_by_letter() {
    let files = files();
    assert_eq!(files.len(), 6, "{:?}", files.keys());
    for (path, text) in &files {
        let path = Path::new(ROOT).join(path);
        if std::env::var_os("LEASE_BLESS").is_some() {
            fs::write(path, text).unwrap();
        } else {
            assert_eq!(fs::read_to_string(&path).unwrap(), *text, "{}", path.display());
        }
    }
    // And no other: the crate was written from the page alone.
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let path = format!("examples/folder-backend/src/{file}");
        assert!(files.contains_key(path.as_str()), "{path} is not on the page");
    }
}

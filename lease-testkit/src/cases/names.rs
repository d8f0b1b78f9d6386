//! Names and holders are compared byte for byte, and no text of them means anything to the store.

use super::{Client, claim_to, two};
use crate::Harness;
use lease_core::{Claim, Holder, MAX_NAME_BYTES};

pub async fn case_is_kept<H: Harness>(store: &H) {
    all_are_distinct(
        store,
        &[
            "job", "Job", "JOB", "straße", "STRASSE", "i", "I", "ı", "İ", "K", "\u{212a}",
        ],
    )
    .await;
}

pub async fn accents_are_kept<H: Harness>(store: &H) {
    all_are_distinct(
        store,
        &["job", "jób", "jo\u{301}b", "jöb", "e", "é", "ё", "е", "\u{feff}e"],
    )
    .await;
}

pub async fn look_alikes_are_distinct<H: Harness>(store: &H) {
    let spaces = ["a b", "a  b", "a\u{a0}b", "a\u{200b}b", "ab"];
    let widths = ["ａ", "a", "а", "ﬁ", "fi", "1", "１", "①"];
    let marks = [
        "job",
        "job.",
        "job..",
        ".job",
        "job\u{200d}",
        "-job",
        "job-",
        "job_",
        "0job",
        "00job",
    ];
    for alike in [&spaces[..], &widths, &marks] {
        all_are_distinct(store, alike).await;
    }
}

pub async fn longest_names_are_whole<H: Harness>(store: &H) {
    let crabs = "🦀".repeat(MAX_NAME_BYTES / 4);
    let umlauts = "ü".repeat(MAX_NAME_BYTES / 2);
    let letters = "x".repeat(MAX_NAME_BYTES);
    let other_end = format!("{}y", &letters[1..]);
    let shorter = &letters[1..];
    let other_crab = format!("{}🐍", &crabs[4..]);
    all_are_distinct(store, &[&crabs, &other_crab, &umlauts, &letters, &other_end, shorter]).await;
}

pub async fn hostile_names_are_only_names<H: Harness>(store: &H) {
    let hostile = [
        "'",
        "''",
        "\"",
        "`",
        "\\",
        "\\'",
        "\\\\",
        "'; DROP TABLE task_leases; --",
        "' OR '1'='1",
        "job') --",
        "/* job */",
        "%",
        "%%",
        "_",
        "___",
        "j%",
        "job_1",
        "jobX1",
        "[a-z]",
        "*",
        "?",
        "$1",
        ":name",
        "@p1",
        "{0}",
        "NULL",
        "null",
        "0",
        "true",
        "\u{202e}boj",
        "🦀 '\"` 🦀",
        "\u{ffff}",
    ];
    all_are_distinct(store, &hostile).await;
}

pub async fn hostile_holders_are_shown_as_they_are<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let longest = "h".repeat(MAX_NAME_BYTES);
    for (index, holder) in ["o'hara\\%_\"`/1", "🦀/🦀", "NULL", "'; --", "$2", &longest]
        .into_iter()
        .enumerate()
    {
        let held = held_by(&format!("job-{index}"), holder);
        a.wins(&held, "there is no row").await;
        let incumbent = b.is_busy(&claim_to(held.name.as_str(), "b"), "a holds it").await;
        assert_eq!(
            incumbent.expect("a loser who is alone learns who holds it").holder,
            holder
        );
        a.keeps(&held, "it holds it").await;
        a.frees(&held, "it holds it").await;
    }
}

pub async fn holders_are_compared_byte_for_byte<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = held_by("job", "pod/é");
    a.wins(&held, "there is no row").await;
    for alike in ["POD/É", "Pod/é", "pod/e", "pod/e\u{301}", "pod/_", "pod/%", "pod/é."] {
        let other = held_by("job", alike);
        b.is_busy(&other, "another holder has it").await;
        b.has_lost(&other, "another holder has it").await;
        b.frees_nothing(&other, "another holder has it").await;
    }
    a.keeps(&held, "it holds it").await;
}

/// Holds them all side by side, each by a holder of its own, and gives each up by itself.
async fn all_are_distinct<H: Harness>(store: &H, names: &[&str]) {
    let a = Client(store.client().await);
    let claims: Vec<Claim> = names.iter().map(|name| claim_to(name, "a")).collect();
    for claim in &claims {
        a.wins(claim, "no other lease has its name").await;
    }
    for claim in &claims {
        a.keeps(claim, "no other lease has its name").await;
        let incumbent = a.is_busy(&claim_to(claim.name.as_str(), "b"), "a holds it").await;
        assert_eq!(
            incumbent.expect("a loser who is alone learns who holds it").holder,
            claim.holder.as_str()
        );
    }
    for claim in &claims {
        a.frees(claim, "no other lease has its name").await;
    }
}

fn held_by(name: &str, holder: &str) -> Claim {
    let mut claim = claim_to(name, "a");
    claim.holder = Holder::new(holder).expect("the case uses a legal holder");
    claim
}

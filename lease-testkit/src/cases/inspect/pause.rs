//! Keeping everybody off a lease.

use lease_core::{Inspect, Loss, Release};

use super::super::{TTL, claim, minutes, two};
use super::JOB;
use crate::Harness;
use crate::harness::pass;

pub async fn pause_keeps_everybody_off<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    a.pause(&JOB, minutes(30)).await;
    let row = a.live_row(&JOB).await;
    assert_eq!(
        (row.holder.as_str(), row.note.as_deref()),
        ("pause/ops", Some("it hangs"))
    );
    let incumbent = b.is_busy(&claim("b"), "it is paused").await;
    assert_eq!(
        incumbent.expect("a loser who is alone learns who holds it").holder,
        "pause/ops"
    );
    pass(store, minutes(29)).await;
    b.is_busy(&claim("b"), "a minute of the pause is left").await;
    pass(store, minutes(1)).await;
    let token = b.wins(&claim("b"), "the pause is over").await.get();
    assert!(
        token > row.token,
        "the next token must exceed {}; got {token}",
        row.token
    );
}

pub async fn pause_displaces_the_holder<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    let first = a.wins(&held, "there is no row").await.get();
    b.pause(&JOB, minutes(1)).await;
    let row = b.live_row(&JOB).await;
    assert!(
        row.token > first,
        "a pause's token must exceed {first}; the row has {}",
        row.token
    );
    let loss = a.has_lost(&held, "it is paused").await;
    assert_eq!(
        loss,
        Loss::Evicted { by: "ops".to_owned() },
        "the holder is told who paused it"
    );
    pass(store, minutes(9)).await;
    b.is_busy(
        &claim("b"),
        "the pause is over, but a minute of the displaced holder's is left",
    )
    .await;
    pass(store, minutes(1)).await;
    b.wins(&claim("b"), "both are over").await;
}

pub async fn resume_frees_a_lease_that_was_free<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    a.wins(&claim("a"), "there is no row").await;
    pass(store, TTL).await;
    a.pause(&JOB, minutes(30)).await;
    assert_eq!(
        b.resume(&JOB).await,
        Release::Released,
        "whoever resumes, the pause ends"
    );
    assert_eq!(b.resume(&JOB).await, Release::NotHeld, "a second resume finds no pause");
    b.wins(&claim("b"), "the pause was ended").await;
}

pub async fn resume_waits_for_the_displaced_holder<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    a.wins(&claim("a"), "there is no row").await;
    b.pause(&JOB, minutes(30)).await;
    assert_eq!(b.resume(&JOB).await, Release::Released, "it is paused");
    assert_eq!(
        b.resume(&JOB).await,
        Release::NotHeld,
        "the pause was ended, though the row is not free yet"
    );
    pass(store, minutes(9)).await;
    b.is_busy(&claim("b"), "a minute of the displaced holder's is left")
        .await;
    pass(store, minutes(1)).await;
    b.wins(
        &claim("b"),
        "the pause was ended, and the displaced holder's time is over",
    )
    .await;
}

pub async fn second_pause_replaces_the_first<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    a.wins(&claim("a"), "there is no row").await;
    b.pause(&JOB, minutes(60)).await;
    b.pause(&JOB, minutes(20)).await;
    pass(store, minutes(19)).await;
    b.is_busy(&claim("b"), "a minute of the second pause is left").await;
    pass(store, minutes(1)).await;
    b.wins(&claim("b"), "the second pause is over, and replaced the first")
        .await;
}

pub async fn second_pause_remembers_the_displaced_holder<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    a.wins(&claim("a"), "there is no row").await;
    b.pause(&JOB, minutes(60)).await;
    b.pause(&JOB, minutes(1)).await;
    assert_eq!(b.resume(&JOB).await, Release::Released, "it is paused");
    pass(store, minutes(9)).await;
    b.is_busy(&claim("b"), "a minute of the displaced holder's is left")
        .await;
    pass(store, minutes(1)).await;
    b.wins(&claim("b"), "the displaced holder's time is over").await;
}

pub async fn resume_ends_only_a_pause<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    assert_eq!(b.resume(&JOB).await, Release::NotHeld, "there is no row");
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    assert_eq!(b.resume(&JOB).await, Release::NotHeld, "it is held, not paused");
    a.keeps(&held, "it holds it").await;
    b.evict(&JOB).await;
    assert_eq!(b.resume(&JOB).await, Release::NotHeld, "an eviction is no pause");
    b.is_busy(&claim("b"), "the evicted holder may still run").await;
}

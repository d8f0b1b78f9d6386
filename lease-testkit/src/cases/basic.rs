//! Who is granted a lease, and for how long. These hold with `delete_on_release` too.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use lease_core::MAX_TTL;

use super::{Client, TTL, claim, claim_to, for_ttl, minutes, two};
use crate::Harness;
use crate::harness::pass;

pub async fn live_lease_is_busy_for_others<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    a.wins(&claim("a"), "there is no row").await;
    b.is_busy(&claim("b"), "a holds it").await;
    a.is_busy(&claim("a"), "another tenure of the same client holds it")
        .await;
}

pub async fn busy_names_the_incumbent<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("pod-7");
    a.wins(&held, "there is no row").await;
    let incumbent = b.is_busy(&claim("b"), "a holds it").await;
    let incumbent = incumbent.expect("a loser who is alone learns who holds the lease");
    assert_eq!(
        incumbent.holder,
        held.holder.as_str(),
        "the incumbent is the holder in the row"
    );
    let left = incumbent.expires_in;
    assert!(
        left > TTL - minutes(1) && left <= TTL,
        "{left:?} are left of a fresh lease of {TTL:?}"
    );
}

pub async fn equal_labels_exclude_each_other<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let ours = claim("app-1");
    a.wins(&ours, "there is no row").await;
    b.is_busy(&claim("app-1"), "equal labels are two pods with one hostname and pid")
        .await;
    b.has_lost(&claim("app-1"), "it never had it").await;
    a.keeps(&ours, "it holds it").await;
}

pub async fn expired_lease_is_taken_over<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    a.wins(&claim("a"), "there is no row").await;
    pass(store, TTL).await;
    let taken = claim("b");
    b.wins(&taken, "expired is `expires_at <= now`").await;
    a.is_busy(&claim("a"), "b has taken it over").await;
    b.keeps(&taken, "it holds it").await;
}

pub async fn lease_is_held_for_its_whole_ttl<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    a.wins(&claim("a"), "there is no row").await;
    pass(store, TTL - minutes(1)).await;
    b.is_busy(&claim("b"), "a minute of the ttl is left").await;
}

/// The one case with less than half a minute of room: whoever cuts the ttl to seconds ends it within its last second.
pub async fn ttl_keeps_its_fraction_of_a_second<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    a.wins(
        &for_ttl(&claim_to("long", "a"), Duration::from_millis(60_999)),
        "there is no row",
    )
    .await;
    pass(store, Duration::from_secs(60)).await;
    b.is_busy(&claim_to("long", "b"), "0.999 s of its ttl are left").await;
    a.wins(
        &for_ttl(&claim_to("short", "a"), Duration::from_millis(100)),
        "there is no row",
    )
    .await;
    pass(store, Duration::from_millis(100)).await;
    b.wins(&claim_to("short", "b"), "its 100 ms are over").await;
}

pub async fn longest_ttl_is_held_and_ends<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    a.wins(&for_ttl(&claim("a"), MAX_TTL), "there is no row").await;
    pass(store, MAX_TTL - minutes(1)).await;
    b.is_busy(&claim("b"), "a minute of 30 days is left").await;
    pass(store, minutes(1)).await;
    b.wins(&claim("b"), "the 30 days are over").await;
}

pub async fn released_lease_is_free_at_once<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    a.frees(&held, "it holds it").await;
    b.wins(&claim("b"), "a has released it").await;
}

pub async fn retry_is_granted_again<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let tried = claim("a");
    let first = a.wins(&tried, "there is no row").await;
    let again = a.wins(&tried, "it repeats a try whose answer was lost").await;
    assert_eq!(first, again, "a retry keeps the token");
    b.is_busy(&claim("b"), "a holds it").await;
}

pub async fn retry_extends<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let tried = claim("a");
    a.wins(&tried, "there is no row").await;
    pass(store, minutes(6)).await;
    a.wins(&tried, "it is a retry").await;
    pass(store, minutes(6)).await;
    b.is_busy(&claim("b"), "the retry gave it a whole ttl from then").await;
    pass(store, minutes(4)).await;
    b.wins(&claim("b"), "that ttl is over").await;
}

pub async fn retry_with_a_shorter_ttl_never_shortens<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let tried = claim("a");
    a.wins(&tried, "there is no row").await;
    a.wins(&for_ttl(&tried, minutes(1)), "it is a retry").await;
    pass(store, minutes(5)).await;
    b.is_busy(&claim("b"), "half of the first ttl is left").await;
}

pub async fn acquire_leaves_other_rows_alone<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    a.wins(&claim_to("one", "a"), "there is no row").await;
    a.wins(&claim_to("two", "a"), "there is no row").await;
    pass(store, TTL).await;
    a.wins(&claim_to("one", "a"), "it has expired").await;
    b.wins(
        &claim_to("two", "b"),
        "it has expired, and only `one` was acquired since",
    )
    .await;
}

pub async fn many_names_do_not_block_each_other<H: Harness>(store: &H) {
    let client = &Client(store.client().await);
    let claims: Vec<_> = (0..1_000).map(|i| claim_to(&format!("job-{i}"), "a")).collect();
    let held = stream::iter(&claims).map(|claim| client.wins(claim, "no other lease has its name"));
    assert_eq!(held.buffer_unordered(16).count().await, claims.len());
    let freed = stream::iter(&claims).map(|claim| client.frees(claim, "it holds it"));
    assert_eq!(freed.buffer_unordered(16).count().await, claims.len());
    let names = stream::iter(&claims).map(|claim| claim_to(claim.name.as_str(), "b"));
    let again = names.map(|claim| async move { client.wins(&claim, "all were released").await });
    assert_eq!(again.buffer_unordered(16).count().await, claims.len());
}

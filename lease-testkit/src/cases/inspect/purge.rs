//! Deleting old rows.

use std::iter;
use std::time::Duration;

use lease_core::{Inspect, PURGE_MARGIN};
use tokio::task::yield_now;

use super::super::contention::{contest, join, spawn};
use super::super::{Client, TTL, claim, claim_to, for_ttl, minutes, two};
use super::{JOB, operator};
use crate::harness::pass;
use crate::{Harness, Overlap};

pub async fn purge_deletes_what_is_old<H: Harness<Repo: Inspect>>(store: &H) {
    let a = Client(store.client().await);
    a.wins(&claim_to("old", "a"), "there is no row").await;
    a.wins(&claim_to("older", "a"), "there is no row").await;
    pass(store, TTL + minutes(60)).await;
    a.wins(&claim_to("young", "a"), "there is no row").await;
    pass(store, TTL + minutes(30)).await;
    a.wins(&for_ttl(&claim_to("live", "a"), minutes(1)), "there is no row")
        .await;
    assert_eq!(a.purge(minutes(60)).await, 2, "two rows expired an hour ago or more");
    let left: Vec<String> = a.list().await.into_iter().map(|row| row.name).collect();
    assert_eq!(
        left,
        ["live", "young"],
        "the live row and the one that expired half an hour ago stay"
    );
    a.wins(&claim_to("old", "a"), "its row was deleted").await;
}

pub async fn purge_keeps_a_token_ahead_of_the_clock<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    store.step_clock(-3_600_000_000).await;
    let first = a.wins(&held, "it is a retry").await;
    let (by, why) = operator();
    b.0.evict_now(&JOB, &by, &why).await.expect("a healthy store evicts");
    pass(store, minutes(30)).await;
    assert_eq!(
        a.purge(minutes(10)).await,
        0,
        "a new row's token would be behind the purged one's"
    );
    let second = b.wins(&claim("b"), "it was freed").await;
    assert!(second > first, "the next token must exceed {first}; got {second}");
}

pub async fn purge_races_contenders<H: Harness<Repo: Inspect>>(store: &H) {
    let overlap = Overlap::new();
    let mut seen = overlap.finish().expect("nobody was inside yet");
    for _ in 0..10 {
        let client = Client(store.client().await);
        let purges = spawn(iter::once(async move {
            for _ in 0..5 {
                client.purge(Duration::ZERO).await;
                yield_now().await;
            }
        }));
        seen = contest(store, overlap.clone(), 8, 1).await;
        join(purges).await;
        // The next round's purge may have the row that the next round's clients find.
        pass(store, PURGE_MARGIN).await;
    }
    assert_eq!(seen.sections, 80, "every turn enters once");
}

pub async fn purge_keeps_a_row_that_was_held_within_a_minute<H: Harness<Repo: Inspect>>(store: &H) {
    let a = Client(store.client().await);
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    a.frees(&held, "it holds it").await;
    pass(store, PURGE_MARGIN / 2).await;
    assert_eq!(
        a.purge(Duration::ZERO).await,
        0,
        "an acquire that saw no row may still be under way, with a token from before"
    );
    pass(store, PURGE_MARGIN / 2).await;
    assert_eq!(a.purge(Duration::ZERO).await, 1, "a minute went by");
}

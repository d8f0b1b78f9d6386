//! Taking a lease away.

use std::time::Duration;

use lease_core::{Evict, Inspect, Loss};

use super::super::{Client, TTL, claim, minutes, two};
use super::{JOB, operator, unread};
use crate::Harness;
use crate::harness::pass;

pub async fn evicted_holder_is_told_and_nobody_starts_early<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    pass(store, minutes(2)).await;
    let free_in = b.evict(&JOB).await;
    assert!(
        free_in > minutes(7) && free_in <= minutes(8),
        "8 minutes of the old holder are left, not {free_in:?}"
    );
    let loss = a.has_lost(&held, "it was evicted").await;
    assert_eq!(
        loss,
        Loss::Evicted { by: "ops".to_owned() },
        "the holder is told who evicted it"
    );
    let incumbent = b.is_busy(&claim("b"), "the old holder may still run").await;
    assert_eq!(
        incumbent.expect("a loser who is alone learns who holds it").holder,
        "evict/ops"
    );
    pass(store, minutes(7)).await;
    b.is_busy(&claim("b"), "a minute of the old holder's is left").await;
    pass(store, minutes(1)).await;
    b.wins(&claim("b"), "the old holder's time is over").await;
}

pub async fn evicted_holder_can_neither_renew_nor_release<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    b.evict(&JOB).await;
    let before = unread(b.live_row(&JOB).await);
    a.has_lost(&held, "it was evicted").await;
    a.frees_nothing(&held, "it was evicted").await;
    a.is_busy(&held, "it was evicted, so this is no retry").await;
    assert_eq!(
        unread(b.live_row(&JOB).await),
        before,
        "the evicted holder changes nothing"
    );
}

pub async fn eviction_has_a_greater_token_and_a_reason<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    let first = a.wins(&claim("a"), "there is no row").await.get();
    b.evict(&JOB).await;
    let row = b.live_row(&JOB).await;
    assert!(
        row.token > first,
        "an eviction's token must exceed {first}; the row has {}",
        row.token
    );
    assert_eq!(row.note.as_deref(), Some("it hangs"), "the row keeps the reason");
    pass(store, TTL).await;
    let next = b.wins(&claim("b"), "the old holder's time is over").await.get();
    assert!(next > row.token, "the next token must exceed {}; got {next}", row.token);
}

pub async fn eviction_takes_only_what_is_live<H: Harness<Repo: Inspect>>(store: &H) {
    let a = Client(store.client().await);
    let (by, why) = operator();
    let absent = a.0.evict(&JOB, &by, &why).await.expect("a healthy store evicts");
    assert_eq!(
        (absent, a.row(&JOB).await),
        (Evict::NotHeld, None),
        "without a row there is nothing to evict"
    );
    a.wins(&claim("a"), "there is no row").await;
    pass(store, TTL).await;
    let before = a.row(&JOB).await.map(unread);
    let expired = a.0.evict(&JOB, &by, &why).await.expect("a healthy store evicts");
    let at_once = a.0.evict_now(&JOB, &by, &why).await.expect("a healthy store evicts");
    assert_eq!(
        (expired, at_once),
        (Evict::NotHeld, Evict::NotHeld),
        "an expired row is nobody's"
    );
    assert_eq!(a.row(&JOB).await.map(unread), before, "and stays as it is");
}

pub async fn evict_now_frees_at_once<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    let (held, taken) = (claim("a"), claim("b"));
    let first = a.wins(&held, "there is no row").await;
    let (by, why) = operator();
    let answer = b.0.evict_now(&JOB, &by, &why).await.expect("a healthy store evicts");
    assert_eq!(
        answer,
        Evict::Evicted {
            free_in: Duration::ZERO
        },
        "it is free at once"
    );
    assert!(
        matches!(a.has_lost(&held, "it was evicted").await, Loss::Taken(_)),
        "another stands in the row"
    );
    let second = b.wins(&taken, "it was freed at once").await;
    assert!(second > first, "the next token must exceed {first}; got {second}");
    a.frees_nothing(&held, "b has it").await;
    b.keeps(&taken, "it holds it").await;
}

pub async fn token_grows_over_an_eviction_after_the_clock_stepped_back<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    store.step_clock(-3_600_000_000).await;
    let first = a.wins(&held, "it is a retry").await;
    let (by, why) = operator();
    b.0.evict_now(&JOB, &by, &why).await.expect("a healthy store evicts");
    let second = b.wins(&claim("b"), "it was freed at once").await;
    assert!(
        second > first,
        "a token never follows the clock back: it must exceed {first}; got {second}"
    );
}

pub async fn grant_clears_the_note<H: Harness<Repo: Inspect>>(store: &H) {
    let a = Client(store.client().await);
    a.wins(&claim("a"), "there is no row").await;
    a.evict(&JOB).await;
    pass(store, TTL).await;
    a.wins(&claim("a"), "the old holder's time is over").await;
    assert_eq!(a.live_row(&JOB).await.note, None, "the new tenure was not evicted");
}

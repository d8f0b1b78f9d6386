//! The fencing token: it grows with every grant that is no retry, whatever ended the tenure before.

use std::sync::Arc;

use lease_core::Acquire;
use tokio::sync::Barrier;

use super::contention::{clients, contest, join, spawn};
use super::{Client, TTL, claim, claim_to, minutes, two};
use crate::harness::pass;
use crate::{Harness, Overlap};

pub async fn first_token_is_the_clock<H: Harness>(store: &H) {
    let a = Client(store.client().await);
    let token = a.wins(&claim("a"), "there is no row").await.get();
    // 2020 and the end of what a double holds exactly: a clock in another unit is far outside.
    let plausible = 1_577_836_800_000_000..1 << 53;
    assert!(
        plausible.contains(&token),
        "a first token is the clock in microseconds since 1970, not {token}"
    );
}

pub async fn token_grows_on_takeover<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let first = a.wins(&claim("a"), "there is no row").await;
    pass(store, TTL).await;
    let second = b.wins(&claim("b"), "it has expired").await;
    assert!(second > first, "a takeover's token must exceed {first}; got {second}");
}

pub async fn token_grows_after_release<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    let first = a.wins(&held, "there is no row").await;
    a.frees(&held, "it holds it").await;
    let second = b.wins(&claim("b"), "it was released").await;
    assert!(second > first, "the next token must exceed {first}; got {second}");
}

/// The same text in the column is a retry only while that holder has the lease.
pub async fn token_grows_for_the_same_holder_after_expiry<H: Harness>(store: &H) {
    let a = Client(store.client().await);
    let held = claim("a");
    let first = a.wins(&held, "there is no row").await;
    pass(store, TTL).await;
    let second = a.wins(&held, "it has expired").await;
    assert!(
        second > first,
        "after expiry it is no retry, its token must exceed {first}; got {second}"
    );
}

/// A database that failed over, or whose clock was set back, stands behind the row's token. By law L4 such a row is
/// free no sooner than at its `acquired_at`, hence the step on. A store that moves its rows has the token an hour
/// ahead even then; where the clock itself moves, they meet to the microsecond.
pub async fn token_grows_when_the_clock_stepped_back<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    store.step_clock(-3_600_000_000).await;
    let first = a.wins(&held, "it is a retry").await;
    a.frees(&held, "it holds it").await;
    pass(store, minutes(60)).await;
    let second = b.wins(&claim("b"), "it was released").await;
    assert!(
        second > first,
        "a token never follows the clock back: it must exceed {first}; got {second}"
    );
}

pub async fn token_grows_over_every_kind_of_end<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let mut last = 0;
    for round in 0..20 {
        let held = claim("a").at_least_for(minutes(5));
        let token = if round % 2 == 0 { &a } else { &b }
            .wins(&held, "the tenure before has ended")
            .await
            .get();
        assert!(token > last, "round {round}: a token must exceed {last}; got {token}");
        last = token;
        match round % 4 {
            0 => pass(store, TTL).await,
            1 => a.frees(&held.at_least_for(minutes(0)), "it holds it").await,
            2 => {
                a.frees(&held, "it holds it").await;
                pass(store, minutes(5)).await;
            }
            _ => {
                a.keeps(&held, "it holds it").await;
                pass(store, TTL).await;
                a.frees(&held, "the row is still this holder's").await;
            }
        }
    }
}

pub async fn retry_keeps_the_token<H: Harness>(store: &H) {
    let a = Client(store.client().await);
    let tried = claim("a");
    let first = a.wins(&tried, "there is no row").await;
    for _ in 0..3 {
        let again = a.wins(&tried, "it is a retry").await;
        assert_eq!(
            again, first,
            "a retry keeps the token: its own fence would refuse the first one"
        );
    }
}

/// The minimum counts from `acquired_at`, so a release shows where that stands.
pub async fn retry_keeps_acquired_at<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let tried = claim("a").at_least_for(minutes(6));
    a.wins(&tried, "there is no row").await;
    pass(store, minutes(4)).await;
    a.wins(&tried, "it is a retry").await;
    pass(store, minutes(2)).await;
    a.frees(&tried, "it holds it").await;
    b.wins(&claim("b"), "the minimum of 6 minutes from the first grant is over")
        .await;
}

/// One client may give up waiting and retry on another connection while the first statement still runs.
pub async fn parallel_retries_share_one_token<H: Harness>(store: &H) {
    let clients = clients(store, 4).await;
    for round in 0..10 {
        let tried = claim_to(&format!("job-{round}"), "a");
        let start = Arc::new(Barrier::new(clients.len()));
        let tries = spawn(clients.iter().map(|client| {
            let (client, tried, start) = (Arc::clone(client), tried.clone(), Arc::clone(&start));
            async move {
                start.wait().await;
                client.acquire(&tried).await
            }
        }));
        let mut tokens = Vec::new();
        for answer in join(tries).await {
            match answer {
                Acquire::Granted(token) => tokens.push(token),
                Acquire::Busy(incumbent) => {
                    let other = incumbent.filter(|incumbent| incumbent.holder != tried.holder.as_str());
                    assert_eq!(other, None, "nobody but this holder tries");
                }
            }
        }
        let kept = clients[0]
            .wins(&tried, "it is a retry, and one of the tries was granted")
            .await;
        assert!(!tokens.is_empty(), "one of the tries must be granted");
        assert!(
            tokens.iter().all(|token| *token == kept),
            "retries of one try share its token {kept}: {tokens:?}"
        );
    }
}

pub async fn tokens_grow_under_contention<H: Harness>(store: &H) {
    let seen = contest(store, Overlap::new(), 8, 10).await;
    assert_eq!(seen.sections, 80, "every turn enters once");
}

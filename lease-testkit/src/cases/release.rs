//! What a release frees, when, and what it leaves alone. With `delete_on_release` the answers differ.

use lease_core::Loss;

use super::{Client, TTL, also_to, claim, claim_to, minutes, two};
use crate::Harness;
use crate::harness::pass;

pub async fn release_by_another_is_not_held<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    b.frees_nothing(&claim("b"), "a holds it").await;
    b.is_busy(&claim("b"), "a holds it").await;
    a.keeps(&held, "it holds it").await;
}

pub async fn late_release_leaves_the_successor<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let (old, new) = (claim("a"), claim("b"));
    a.wins(&old, "there is no row").await;
    pass(store, TTL).await;
    b.wins(&new, "a's lease has expired").await;
    a.frees_nothing(&old, "b has taken it over").await;
    let c = Client(store.client().await);
    let incumbent = c.is_busy(&claim("c"), "b holds it").await;
    assert_eq!(
        incumbent.expect("a loser who is alone learns who holds it").holder,
        new.holder.as_str()
    );
    b.keeps(&new, "it holds it").await;
}

/// An acquire whose answer was lost is undone by its holder, and that undo may run late: see `Repo`'s "Cancelling".
pub async fn late_undo_leaves_the_next_tenure<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let (burned, next) = (claim("a"), claim("a"));
    a.wins(&burned, "there is no row").await;
    a.frees(&burned, "the undo of a granted acquire frees it").await;
    let token = a.wins(&next, "the undo has freed it").await;
    b.frees_nothing(&burned, "the repeated undo is of a holder that is gone")
        .await;
    b.is_busy(&claim("b"), "the next tenure runs").await;
    a.keeps(&next, "it runs").await;
    assert_eq!(
        a.wins(&next, "a retry reads the row's token").await,
        token,
        "the late undo changes nothing"
    );
}

pub async fn second_release_is_not_held<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    a.frees(&held.clone().at_least_for(minutes(8)), "it holds it").await;
    a.frees_nothing(&held, "it was released before").await;
    b.is_busy(&claim("b"), "the minimum of the first release stands").await;
}

pub async fn release_without_a_row_is_not_held<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    a.frees_nothing(&claim("a"), "there is no row").await;
    b.wins(&claim("b"), "a release never makes a row").await;
}

pub async fn release_leaves_other_rows_alone<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let one = claim_to("one", "a");
    let two = also_to("two", &one);
    a.wins(&one, "there is no row").await;
    a.wins(&two, "there is no row").await;
    a.frees(&one, "it holds it").await;
    b.is_busy(
        &claim_to("two", "b"),
        "only `one` was released, even by the same holder",
    )
    .await;
    a.keeps(&two, "it holds it").await;
}

pub async fn minimum_keeps_others_out_after_a_release<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a").at_least_for(minutes(8));
    a.wins(&held, "there is no row").await;
    a.frees(&held, "it holds it").await;
    pass(store, minutes(7)).await;
    b.is_busy(&claim("b"), "a minute of the minimum is left").await;
    pass(store, minutes(1)).await;
    b.wins(&claim("b"), "the minimum is over, though not the ttl").await;
}

pub async fn minimum_counts_from_the_grant<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a").at_least_for(minutes(8));
    a.wins(&held, "there is no row").await;
    pass(store, minutes(6)).await;
    a.frees(&held, "it holds it").await;
    b.is_busy(&claim("b"), "two minutes of the minimum are left").await;
    pass(store, minutes(2)).await;
    b.wins(&claim("b"), "eight minutes have passed since the grant").await;
}

pub async fn minimum_counts_from_the_own_grant_after_a_takeover<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    a.wins(&claim("a"), "there is no row").await;
    pass(store, TTL).await;
    let held = claim("b").at_least_for(minutes(8));
    b.wins(&held, "a's lease has expired").await;
    b.frees(&held, "it holds it").await;
    a.is_busy(&claim("a"), "b's minimum counts from b's grant, not from a's")
        .await;
}

pub async fn minimum_that_is_over_frees_at_once<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a").at_least_for(minutes(5));
    a.wins(&held, "there is no row").await;
    pass(store, minutes(5)).await;
    a.frees(&held, "it holds it").await;
    b.wins(&claim("b"), "the minimum is over").await;
}

pub async fn minimum_may_exceed_the_ttl<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a").at_least_for(minutes(30));
    a.wins(&held, "there is no row").await;
    a.frees(&held, "it holds it").await;
    pass(store, minutes(29)).await;
    b.is_busy(&claim("b"), "a minute of the minimum is left").await;
    pass(store, minutes(1)).await;
    b.wins(&claim("b"), "the minimum is over").await;
}

pub async fn renewal_after_a_release_is_lost<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a").at_least_for(minutes(8));
    a.wins(&held, "there is no row").await;
    a.frees(&held, "it holds it").await;
    let loss = a.has_lost(&held, "it has released it").await;
    assert_eq!(loss, Loss::Released, "the row says that this holder released it");
    pass(store, minutes(8)).await;
    b.wins(&claim("b"), "the late renewal did not extend the minimum").await;
}

pub async fn released_row_says_so_when_free<H: Harness>(store: &H) {
    let a = Client(store.client().await);
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    a.frees(&held, "it holds it").await;
    let loss = a.has_lost(&held, "it has released it").await;
    assert_eq!(loss, Loss::Released, "released says more than expired");
}

pub async fn late_duplicate_of_an_acquire_is_busy_after_the_release<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a").at_least_for(minutes(8));
    a.wins(&held, "there is no row").await;
    a.frees(&held, "it holds it").await;
    a.is_busy(&held, "a released row is no longer its holder's to retry")
        .await;
    pass(store, minutes(8)).await;
    b.wins(&claim("b"), "the duplicate did not extend the minimum").await;
}

pub async fn release_never_raises_an_expired_row<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a").at_least_for(minutes(30));
    a.wins(&held, "there is no row").await;
    pass(store, TTL).await;
    a.frees(&held, "the row is still this holder's, and was not released before")
        .await;
    b.wins(&claim("b"), "an expired row stays expired, whatever the minimum")
        .await;
}

pub async fn grant_clears_the_release<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let (old, new) = (claim("a"), claim("b"));
    a.wins(&old, "there is no row").await;
    a.frees(&old, "it holds it").await;
    b.wins(&new, "a has released it").await;
    b.keeps(&new, "its tenure was not released").await;
    b.wins(&new, "a retry is granted while its tenure is not released")
        .await;
    b.frees(&new, "its tenure was not released").await;
}

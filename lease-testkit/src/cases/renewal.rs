//! What a renewal does, and when it finds the lease lost. These hold with `delete_on_release` too.

use lease_core::{Loss, Renew, Repo};

use super::{Client, TTL, also_to, claim, claim_to, for_ttl, minutes, two};
use crate::Harness;
use crate::harness::pass;

pub async fn renewal_extends_from_now<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    pass(store, minutes(6)).await;
    a.keeps(&held, "it holds it").await;
    pass(store, minutes(6)).await;
    b.is_busy(&claim("b"), "the renewal gave it a whole ttl from then")
        .await;
    pass(store, minutes(4)).await;
    b.wins(&claim("b"), "that ttl is over").await;
}

pub async fn renewals_do_not_add_up<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    for _ in 0..10 {
        a.keeps(&held, "it holds it").await;
    }
    let incumbent = b
        .is_busy(&claim("b"), "a holds it")
        .await
        .expect("a loser who is alone learns who holds it");
    assert!(
        incumbent.expires_in <= TTL,
        "{:?} are left of a ttl of {TTL:?}",
        incumbent.expires_in
    );
    pass(store, TTL).await;
    b.wins(&claim("b"), "a ttl has passed since the last renewal").await;
}

pub async fn renewal_with_a_shorter_ttl_never_shortens<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    a.keeps(&for_ttl(&held, minutes(1)), "it holds it").await;
    pass(store, minutes(5)).await;
    b.is_busy(&claim("b"), "half of the first ttl is left").await;
}

pub async fn renewal_keeps_the_token<H: Harness>(store: &H) {
    let a = Client(store.client().await);
    let held = claim("a");
    let granted = a.wins(&held, "there is no row").await;
    a.keeps(&held, "it holds it").await;
    let kept = a.wins(&held, "a retry reads the row's token").await;
    assert_eq!(granted, kept, "a renewal keeps the token");
}

/// The minimum counts from `acquired_at`, so a release shows where that stands.
pub async fn renewal_keeps_acquired_at<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a").at_least_for(minutes(6));
    a.wins(&held, "there is no row").await;
    pass(store, minutes(4)).await;
    a.keeps(&held, "it holds it").await;
    pass(store, minutes(2)).await;
    a.frees(&held, "it holds it").await;
    b.wins(&claim("b"), "the minimum of 6 minutes from the grant is over")
        .await;
}

pub async fn expired_lease_is_lost_though_nobody_took_it<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    pass(store, TTL).await;
    let loss = a.has_lost(&held, "expired is `expires_at <= now`").await;
    assert_eq!(loss, Loss::Expired, "the row is still this holder's");
    b.wins(&claim("b"), "a late renewal never revives").await;
}

pub async fn loss_names_the_successor<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let (old, new) = (claim("a"), claim("b"));
    a.wins(&old, "there is no row").await;
    pass(store, TTL).await;
    b.wins(&new, "it has expired").await;
    let Loss::Taken(incumbent) = a.has_lost(&old, "b has taken it over").await else {
        panic!("the loss must say that another holder stands in the row");
    };
    assert_eq!(
        incumbent.holder,
        new.holder.as_str(),
        "the incumbent is the holder in the row"
    );
    let left = incumbent.expires_in;
    assert!(
        left > TTL - minutes(1) && left <= TTL,
        "{left:?} are left of a fresh lease of {TTL:?}"
    );
}

pub async fn renewal_by_another_changes_nothing<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    pass(store, minutes(6)).await;
    b.has_lost(&claim("b"), "a holds it").await;
    a.keeps(&for_ttl(&held, minutes(1)), "it holds it").await;
    pass(store, minutes(4)).await;
    b.wins(&claim("b"), "a's first ttl is over, and nothing of a's was longer")
        .await;
}

pub async fn renewal_without_a_row_is_gone<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let never = claim("a");
    let loss = a.has_lost(&never, "there is no row").await;
    assert_eq!(loss, Loss::Gone, "there is no row");
    b.wins(&claim("b"), "a renewal never makes a row").await;
}

/// Whoever deletes the row in `expired` takes the other's time with it, so both are the same holder's.
pub async fn renewal_leaves_other_rows_alone<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let one = claim_to("one", "a");
    let two = also_to("two", &one);
    a.wins(&one, "there is no row").await;
    a.wins(&two, "there is no row").await;
    pass(store, minutes(6)).await;
    a.keeps(&one, "it holds it").await;
    pass(store, minutes(4)).await;
    b.is_busy(&claim_to("one", "b"), "it was renewed").await;
    b.wins(&claim_to("two", "b"), "only `one` was renewed, even by the same holder")
        .await;
}

pub async fn renew_all_answers_in_the_order_of_its_claims<H: Harness>(store: &H) {
    let (a, b) = two(store).await;
    let held = [claim_to("z", "a"), claim_to("m", "a"), claim_to("a", "a")];
    for claim in &held {
        a.wins(claim, "there is no row").await;
    }
    let theirs = claim_to("theirs", "b");
    b.wins(&theirs, "there is no row").await;
    let lost = claim_to("theirs", "a");
    let gone = claim_to("gone", "a");
    pass(store, minutes(6)).await;

    let [z, m, first] = held.clone();
    let answers = a.0.renew_all(&[z, lost, m, gone, first]).await;
    let answers: Vec<_> = answers
        .into_iter()
        .map(|answer| answer.expect("a healthy store answers for each"))
        .collect();
    let [
        Renew::Renewed,
        Renew::Lost(Loss::Taken(_)),
        Renew::Renewed,
        Renew::Lost(Loss::Gone),
        Renew::Renewed,
    ] = &answers[..]
    else {
        panic!("the answers must be renewed, taken, renewed, gone, renewed; got {answers:?}");
    };
    assert!(a.0.renew_all(&[]).await.is_empty(), "no claims have no answers");

    pass(store, minutes(4)).await;
    for claim in &held {
        b.is_busy(&claim_to(claim.name.as_str(), "b"), "it was renewed with the others")
            .await;
    }
    a.wins(&claim_to("theirs", "a"), "a stranger's renewal did not extend it")
        .await;
}

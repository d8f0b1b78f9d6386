//! What operators see and do. `H::Repo` implements [`Inspect`].

use std::iter;
use std::time::Duration;

use lease_core::{DbTime, Evict, Inspect, Label, LeaseName, LeaseRow, Loss, Note, Release, Repo};

use tokio::task::yield_now;

use super::contention::{contest, join, spawn};
use super::{Client, TTL, claim, claim_to, for_ttl, minutes, two};
use crate::harness::pass;
use crate::{Harness, Overlap};

const JOB: LeaseName = LeaseName::from_static("job");

pub async fn row_shows_the_grant<H: Harness<Repo: Inspect>>(store: &H) {
    let a = Client(store.client().await);
    assert_eq!(a.row(&JOB).await, None, "there is no row before the first grant");
    for round in ["there is no row", "the first grant has expired"] {
        let held = claim("a");
        let token = a.wins(&held, round).await;
        let row = a.live_row(&JOB).await;
        assert_eq!((row.name.as_str(), row.holder.as_str()), ("job", held.holder.as_str()));
        assert_eq!(
            (row.token, row.released_at, row.note.as_deref()),
            (token.get(), None, None)
        );
        let extent = between(row.acquired_at, row.expires_at);
        assert!(
            extent > TTL - minutes(1) && extent < TTL + minutes(1),
            "granted for {TTL:?}, the row says {extent:?}"
        );
        assert!(
            between(row.acquired_at, row.read_at) < minutes(1),
            "it was granted just now: {row:?}"
        );
        pass(store, TTL).await;
    }
}

pub async fn list_shows_every_row_by_name<H: Harness<Repo: Inspect>>(store: &H) {
    let a = Client(store.client().await);
    assert_eq!(a.list().await, [], "an empty store has no rows");
    for name in ["m", "z", "a", "Z", "é"] {
        a.wins(&claim_to(name, "a"), "there is no row").await;
    }
    let names: Vec<String> = a.list().await.into_iter().map(|row| row.name).collect();
    assert_eq!(
        names,
        ["Z", "a", "m", "z", "é"],
        "rows come by name, in the order of their bytes"
    );
}

pub async fn row_shows_the_release<H: Harness<Repo: Inspect>>(store: &H) {
    let a = Client(store.client().await);
    let held = claim("a").at_least_for(minutes(5));
    let token = a.wins(&held, "there is no row").await;
    let before = a.live_row(&JOB).await;
    a.frees(&held, "it holds it").await;
    let row = a.live_row(&JOB).await;
    assert_eq!(
        (row.token, row.holder.as_str()),
        (token.get(), held.holder.as_str()),
        "a release keeps both"
    );
    assert_eq!(row.acquired_at, before.acquired_at, "a release keeps `acquired_at`");
    let released = row.released_at.expect("a released row says when");
    assert!(
        between(released, row.read_at) < minutes(1),
        "it was released just now: {row:?}"
    );
    assert_eq!(
        between(row.acquired_at, row.expires_at),
        minutes(5),
        "it expires with its minimum, exactly"
    );
}

pub async fn row_keeps_its_grant_over_renewals_and_retries<H: Harness<Repo: Inspect>>(store: &H) {
    let a = Client(store.client().await);
    let held = claim("a");
    a.wins(&held, "there is no row").await;
    let granted = a.live_row(&JOB).await;
    a.keeps(&held, "it holds it").await;
    let renewed = a.live_row(&JOB).await;
    a.wins(&held, "it is a retry").await;
    let retried = a.live_row(&JOB).await;
    for row in [&renewed, &retried] {
        assert_eq!(
            (row.token, row.acquired_at),
            (granted.token, granted.acquired_at),
            "both keep the grant"
        );
    }
    assert!(
        renewed.expires_at >= granted.expires_at && retried.expires_at >= renewed.expires_at,
        "both extend"
    );
}

pub async fn refused_operations_leave_the_row_as_it_is<H: Harness<Repo: Inspect>>(store: &H) {
    let (a, b) = two(store).await;
    let (old, new) = (claim("a"), claim("b"));
    a.wins(&old, "there is no row").await;
    pass(store, TTL).await;
    b.wins(&new, "it has expired").await;
    let before = unread(a.live_row(&JOB).await);
    a.is_busy(&old, "b has taken it over").await;
    a.has_lost(&old, "b has taken it over").await;
    a.frees_nothing(&old, "b has taken it over").await;
    assert_eq!(
        unread(a.live_row(&JOB).await),
        before,
        "who was refused changed nothing"
    );
}

pub async fn operations_leave_other_rows_as_they_are<H: Harness<Repo: Inspect>>(store: &H) {
    let a = Client(store.client().await);
    let (one, other) = (claim_to("one", "a"), LeaseName::from_static("other"));
    a.wins(&one, "there is no row").await;
    a.wins(&claim_to("other", "a"), "there is no row").await;
    pass(store, TTL).await;
    let before = a.row(&other).await.map(unread);
    let (by, why) = operator();
    a.wins(&one, "it has expired").await;
    a.keeps(&one, "it holds it").await;
    a.frees(&one, "it holds it").await;
    a.pause(&one.name, minutes(1)).await;
    a.resume(&one.name).await;
    a.wins(&claim_to("one", "a"), "the pause is over").await;
    a.0.evict_now(&one.name, &by, &why)
        .await
        .expect("a healthy store evicts");
    assert_eq!(a.row(&other).await.map(unread), before, "the other row is as it was");
}

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
    let client = Client(store.client().await);
    let purges = spawn(iter::once(async move {
        for _ in 0..50 {
            client.purge(Duration::ZERO).await;
            yield_now().await;
        }
    }));
    let seen = contest(store, Overlap::new(), 8, 10).await;
    assert_eq!(seen.sections, 80, "every turn enters once");
    join(purges).await;
}

impl<R: Inspect + Repo> Client<R> {
    async fn row(&self, name: &LeaseName) -> Option<LeaseRow> {
        self.0.get(name).await.expect("a healthy store shows its rows")
    }

    async fn live_row(&self, name: &LeaseName) -> LeaseRow {
        let row = self
            .row(name)
            .await
            .expect("the row must be there, since it was granted or paused");
        assert!(row.is_live(), "the row must be live: {row:?}");
        row
    }

    async fn list(&self) -> Vec<LeaseRow> {
        self.0.list().await.expect("a healthy store shows its rows")
    }

    async fn evict(&self, name: &LeaseName) -> Duration {
        let (by, why) = operator();
        match self.0.evict(name, &by, &why).await.expect("a healthy store evicts") {
            Evict::Evicted { free_in } => free_in,
            other => panic!("a live lease must be evicted; got {other:?}"),
        }
    }

    async fn pause(&self, name: &LeaseName, duration: Duration) {
        let (by, why) = operator();
        self.0
            .pause(name, duration, &by, &why)
            .await
            .expect("a healthy store pauses");
    }

    async fn resume(&self, name: &LeaseName) -> Release {
        self.0.resume(name).await.expect("a healthy store resumes")
    }

    async fn purge(&self, older_than: Duration) -> u64 {
        self.0.purge(older_than).await.expect("a healthy store purges")
    }
}

fn operator() -> (Label, Note) {
    let by = Label::new("ops").expect("the case uses a legal label");
    (by, Note::new("it hangs").expect("the case uses a legal note"))
}

/// A row without the time it was read at, to be compared with itself.
fn unread(mut row: LeaseRow) -> LeaseRow {
    row.read_at = DbTime::from_micros(0);
    row
}

fn between(from: DbTime, to: DbTime) -> Duration {
    Duration::from_micros(u64::try_from(to.as_micros() - from.as_micros()).expect("the later time is later"))
}

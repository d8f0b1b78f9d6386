//! What operators see and do. `H::Repo` implements [`Inspect`].

use std::time::Duration;

use lease_core::{DbTime, Evict, Inspect, Label, LeaseName, LeaseRow, Note, Release, Repo};

use super::{Client, TTL, claim, claim_to, minutes, two};
use crate::Harness;
use crate::harness::pass;

mod evict;
mod pause;
mod purge;

pub use evict::*;
pub use pause::*;
pub use purge::*;

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

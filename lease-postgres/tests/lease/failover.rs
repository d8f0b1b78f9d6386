//! A standby is promoted in the middle of a tenure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use diesel_async::{AsyncConnection, AsyncPgConnection};
use lease_core::{Guard, Held, Lease, Wait};
use lease_postgres::PostgresRepo;
use lease_postgres::fence::{self, FenceError};
use lease_testkit::Overlap;
use lease_testkit::servers::{Postgres, Settings, Source};

use crate::world::{TTL, secs, sleep, until};

/// Two servers, of which one follows the other.
struct Pair {
    primary: Postgres,
    standby: Postgres,
    url: String,
}

impl Pair {
    async fn new() -> Self {
        let server = || Postgres::private(&Settings::default().source(Source::Local).password("of both")).unwrap();
        let (primary, standby) = (server(), server());
        standby.follow(&primary).unwrap();
        let port = |server: &Postgres| {
            let (_, host) = server.url().rsplit_once('@').unwrap();
            host.split_once('/').unwrap().0.to_owned()
        };
        let url = format!(
            "postgres://postgres:of%20both@{},{}/postgres?target_session_attrs=read-write",
            port(&primary),
            port(&standby)
        );
        let pair = Self { primary, standby, url };
        pair.repo().await.migrate().await.unwrap();
        pair
    }

    async fn repo(&self) -> PostgresRepo {
        PostgresRepo::connect(&self.url).await.unwrap()
    }

    async fn pod(&self) -> Lease {
        Lease::new(self.repo().await)
    }

    /// From now on a commit waits until the standby has it.
    async fn make_synchronous(&self) {
        self.primary.set("synchronous_standby_names", "*").unwrap();
        until("the standby is synchronous", secs(30), || {
            let state = self.primary.sql("SELECT sync_state FROM pg_stat_replication").unwrap();
            state == ["sync"]
        })
        .await;
    }

    /// The standby takes over, and what was the primary follows it.
    fn change_places(&mut self) {
        std::mem::swap(&mut self.primary, &mut self.standby);
        self.standby.follow(&self.primary).unwrap();
    }
}

/// A pod that works under the lease all the time, for two thirds of a ttl or until it has to stop.
async fn works(lease: Lease, overlap: Overlap, entered: Arc<AtomicUsize>, over: Arc<AtomicBool>) {
    while !over.load(Ordering::SeqCst) {
        let Ok(guard) = lease.acquire("job", TTL, Wait::For(secs(1))).await else {
            continue;
        };
        // However that ends: dropped with f, `_inside` says how long it ran.
        let ran = guard
            .run(async |held: Held| {
                let _inside = overlap.enter("job", held.token());
                entered.fetch_add(1, Ordering::SeqCst);
                let _ = held.until_lost(sleep(TTL * 2 / 3)).await;
            })
            .await;
        drop(ran);
    }
    lease.shutdown(secs(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_synchronous_standby_promoted_in_mid_tenure_lets_nobody_overlap() {
    const ROUNDS: usize = 20;
    let mut pair = Pair::new().await;
    pair.make_synchronous().await;
    let overlap = Overlap::new();
    let (entered, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut pods = Vec::new();
    for _ in 0..3 {
        let lease = pair.pod().await;
        pods.push(tokio::spawn(works(
            lease,
            overlap.clone(),
            entered.clone(),
            over.clone(),
        )));
    }
    let somebody_works = || {
        let before = entered.load(Ordering::SeqCst);
        let entered = entered.clone();
        until("somebody works", secs(60), move || {
            entered.load(Ordering::SeqCst) > before
        })
    };
    for round in 0..ROUNDS {
        somebody_works().await;
        pair.primary.kill().unwrap();
        // At once, so that the tenure goes on; or after its end, so that another begins.
        if round % 2 == 1 {
            sleep(TTL).await;
        }
        pair.standby.promote().unwrap();
        somebody_works().await;
        pair.change_places();
        pair.make_synchronous().await;
    }
    over.store(true, Ordering::SeqCst);
    for pod in pods {
        pod.await.unwrap();
    }
    let seen = overlap.finish().unwrap();
    assert!(seen.sections > 2 * ROUNDS as u64, "{seen:?}");
}

/// Whether the fence refuses the holder a write on this server.
async fn is_stale(server: &Postgres, held: &Held) -> bool {
    let mut connection = AsyncPgConnection::establish(server.url()).await.unwrap();
    let checked = connection
        .transaction(async |connection| fence::check(connection, held).await)
        .await;
    match checked {
        Ok(()) => false,
        Err(FenceError::Stale { .. }) => true,
        Err(error) => panic!("{error:?}"),
    }
}

async fn takes(pod: &Lease, ttl: Duration) -> Guard {
    pod.acquire("job", ttl, Wait::For(secs(30))).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn an_asynchronous_standby_that_lost_a_grant_gives_it_again_and_the_fence_refuses_the_first() {
    const ROUNDS: usize = 5;
    /// Long enough that the first holder does not even renew before all is over, which takes some seconds.
    const LONG: Duration = secs(120);
    let mut pair = Pair::new().await;
    let mut overlaps = 0;
    for _ in 0..ROUNDS {
        pair.standby.set("primary_conninfo", "").unwrap();
        until("the standby hears nothing more", secs(30), || {
            pair.standby
                .sql("SELECT 1 FROM pg_stat_wal_receiver")
                .unwrap()
                .is_empty()
        })
        .await;
        let (one, other) = (pair.pod().await, pair.pod().await);
        let first = takes(&one, LONG).await;
        // Nobody can reach it any more, and nobody knows what it still does.
        pair.primary.pause().unwrap();
        pair.standby.promote().unwrap();
        let second = takes(&other, LONG).await;
        overlaps += usize::from(first.held().is_live());
        assert!(second.held().token() > first.held().token(), "tokens grow");
        assert!(is_stale(&pair.standby, first.held()).await);
        assert!(!is_stale(&pair.standby, second.held()).await);

        second.release().await.unwrap();
        one.shutdown(Duration::ZERO).await;
        drop(first);
        pair.standby.reset("primary_conninfo").unwrap();
        pair.change_places();
    }
    assert_eq!(overlaps, ROUNDS, "what the standby had not heard of is given again");
}

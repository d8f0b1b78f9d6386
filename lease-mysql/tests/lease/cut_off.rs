//! C10: packets to and from the server are dropped. No connection is closed, and nobody is told.

use std::sync::Mutex;
use std::time::Duration;

use lease_core::{Lease, Options, Outcome, RepoErrorKind, Stop};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::Dialect;

use crate::child::Part;
use crate::network::{Network, relay};
use crate::support::on_both;
use crate::world::{TTL, World, assert_kind, kept, ms, now, secs, skips, sleep, test_name, ticks, until, within};

on_both!(
    c10_when_packets_are_dropped_f_is_gone_before_its_expiry_and_every_call_returns,
    c10_when_packets_are_dropped_release_and_shutdown_return_in_their_bounds,
    c10_packets_dropped_for_less_than_a_ttl_cost_no_lease,
);

/// What the keeper gives a release, and a quarter more; the rest is for a busy machine.
const RELEASE_BOUND: Duration = secs(7);
/// As a system says that a host is out of reach, some seconds after it has not answered.
const SILENCE: [RepoErrorKind; 2] = [RepoErrorKind::Timeout, RepoErrorKind::Unavailable];

/// A way that leaves this machine, as far as the repo can know.
async fn way_to(world: &World, dialect: Dialect, test: &str) -> Network {
    let url = format!("{}?ssl-mode=DISABLED", world.database.url);
    Network::before(&url, &test_name(dialect, "cut_off", test)).await
}

async fn c10_when_packets_are_dropped_f_is_gone_before_its_expiry_and_every_call_returns(dialect: Dialect) {
    if Part::of_this_process().is_some() {
        return relay().await;
    }
    let world = World::shared(dialect).await;
    let network = way_to(
        &world,
        dialect,
        "c10_when_packets_are_dropped_f_is_gone_before_its_expiry_and_every_call_returns",
    )
    .await;
    let lease = Lease::new(MysqlRepo::connect(&network.url).await.unwrap());
    ticks(&lease).await;
    let (told, live_at_polls) = (Mutex::new(None), Mutex::new(true));
    // A poll that begins right before the drop has a quarter of a second to ask the server.
    let options = Options::from(TTL).drift(ms(250));
    let job = lease.run("job", options, async |held| {
        network.drop_packets(true);
        let watch = async {
            held.cancelled().await;
            *told.lock().unwrap() = Some((held.is_live(), world.is_free("job")));
        };
        let work = async {
            loop {
                // Judged by the server, which we reach on another way: while f is polled, nobody else may start.
                let live = !world.is_free("job");
                *live_at_polls.lock().unwrap() &= live;
                sleep(ms(20)).await;
            }
        };
        tokio::join!(watch, work);
    });
    let start = now();
    let outcome = within(TTL + RELEASE_BOUND, job).await.unwrap();
    let Outcome::Dropped {
        stop: Stop::Overdue {
            last_error: Some(error),
        },
        ..
    } = outcome
    else {
        panic!("dropped, and told what the renewals ran into: {outcome:?}")
    };
    assert_kind(&error, &SILENCE);
    assert_eq!(*told.lock().unwrap(), Some((true, false)), "told before the expiry");
    assert!(*live_at_polls.lock().unwrap(), "no poll after the expiry");
    assert!(now().since(start) > TTL - secs(1), "and not much sooner");
    for _ in 0..3 {
        assert_kind(&skips(&lease).await, &SILENCE);
    }
    network.drop_packets(false);
    until("the row is free", secs(5), || world.is_free("job")).await;
    ticks(&lease).await;
}

async fn c10_when_packets_are_dropped_release_and_shutdown_return_in_their_bounds(dialect: Dialect) {
    if Part::of_this_process().is_some() {
        return relay().await;
    }
    let world = World::shared(dialect).await;
    let network = way_to(
        &world,
        dialect,
        "c10_when_packets_are_dropped_release_and_shutdown_return_in_their_bounds",
    )
    .await;
    let lease = Lease::new(MysqlRepo::connect(&network.url).await.unwrap());
    let guard = lease.try_acquire("released", TTL).await.unwrap().unwrap();
    let kept = lease.try_acquire("kept", TTL).await.unwrap().unwrap();
    network.drop_packets(true);
    let error = within(RELEASE_BOUND, guard.release()).await.unwrap_err();
    assert_kind(&error, &SILENCE);
    assert!(matches!(kept.held().stop(), Some(Stop::Overdue { .. })), "meanwhile");
    assert!(!kept.held().is_live());
    drop(kept);
    let forsaken = within(secs(1) + RELEASE_BOUND, lease.shutdown(secs(1))).await;
    assert_eq!(forsaken, [], "nothing runs any more");
}

async fn c10_packets_dropped_for_less_than_a_ttl_cost_no_lease(dialect: Dialect) {
    if Part::of_this_process().is_some() {
        return relay().await;
    }
    let world = World::shared(dialect).await;
    let network = way_to(&world, dialect, "c10_packets_dropped_for_less_than_a_ttl_cost_no_lease").await;
    let lease = Lease::new(MysqlRepo::connect(&network.url).await.unwrap());
    let outcome = lease.run("job", TTL * 3, async |_| {
        network.drop_packets(true);
        // The renewal that is due after three seconds, and some more, go nowhere.
        sleep(secs(5)).await;
        network.drop_packets(false);
        sleep(TTL * 3).await;
    });
    kept(outcome.await.unwrap());
}

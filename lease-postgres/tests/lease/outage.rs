//! C24, C26: what comes back needs no restart.

use lease_core::{Held, Loss, Options, Outcome, RepoErrorKind, Stop};

use crate::world::{TTL, World, assert_kind, chain, kept, ms, secs, skips, sleep, ticks, until};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c24_a_table_that_is_created_late_is_used_by_the_next_tick() {
    let world = World::private_and_empty();
    let lease = world.pod().await;
    for _ in 0..2 {
        let error = skips(&lease).await;
        assert_kind(&error, &[RepoErrorKind::SchemaMissing]);
        assert!(error.to_string().contains("run migrate"), "{error}");
    }
    world.repo().await.migrate().await.unwrap();
    ticks(&lease).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c24_a_row_deleted_by_hand_ends_the_job_and_the_next_tick_runs() {
    let world = World::shared().await;
    let lease = world.pod().await;
    let outcome = lease.run("job", TTL, async |_| {
        world.database.sql("DELETE FROM task_leases").unwrap();
        sleep(TTL * 2).await;
    });
    let outcome = outcome.await.unwrap();
    let told = matches!(
        outcome,
        Outcome::Dropped {
            stop: Stop::Lost(Loss::Gone),
            ..
        }
    );
    assert!(told, "{outcome:?}");
    ticks(&lease).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c24_connections_that_are_terminated_cost_no_lease() {
    let world = World::shared().await;
    let lease = world.pod().await;
    let outcome = lease.run("job", TTL, async |_| {
        // At times that are no multiple of the second between renewals, so that they are met idle and at work.
        for _ in 0..10 {
            world.terminate();
            sleep(ms(610)).await;
        }
    });
    kept(outcome.await.unwrap());
    world.terminate();
    // A statement that is sent before the end of its connection is noticed would fail with it.
    sleep(ms(300)).await;
    ticks(&lease).await;
}

/// Returns once a renewal has been answered.
async fn renewed(held: &Held) {
    let mut before = held.remaining();
    let moves_on = || {
        let left = held.remaining();
        let renewed = left > before;
        before = left;
        renewed
    };
    until("the lease is renewed", secs(20), moves_on).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c24_a_server_away_for_less_than_a_ttl_costs_no_lease() {
    let world = World::private().await;
    let lease = world.pod().await;
    // To stop and start takes some seconds on a busy machine.
    let options = Options::from(secs(20)).renew_every(ms(500));
    let outcome = lease.run("job", options, async |held| {
        world.server().stop().unwrap();
        sleep(secs(1)).await;
        world.server().start().unwrap();
        renewed(&held).await;
    });
    kept(outcome.await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c24_a_server_away_for_longer_costs_the_ticks_it_lasts_and_no_more() {
    let world = World::private().await;
    let lease = world.pod().await;
    let outcome = lease.run("job", TTL, async |_| {
        world.server().stop().unwrap();
        sleep(TTL * 2).await;
    });
    let Outcome::Dropped {
        stop: Stop::Overdue {
            last_error: Some(error),
        },
        ..
    } = outcome.await.unwrap()
    else {
        panic!("dropped, and told what the renewals ran into")
    };
    assert_kind(&error, &[RepoErrorKind::Unavailable]);
    for _ in 0..3 {
        let error = skips(&lease).await;
        assert_kind(&error, &[RepoErrorKind::Unavailable]);
        assert!(!error.may_have_executed(), "{}", chain(&error));
        sleep(ms(300)).await;
    }
    world.server().start().unwrap();
    ticks(&lease).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c26_a_server_that_turns_read_only_and_back_needs_no_restart() {
    let world = World::private().await;
    let (lease, other) = (world.pod().await, world.pod().await);
    ticks(&other).await;
    let setting = "default_transaction_read_only";
    let outcome = lease.run("held", TTL * 3, async |held| {
        world.server().set(setting, "on").unwrap();
        for pod in [&lease, &other] {
            let error = skips(pod).await;
            assert_kind(&error, &[RepoErrorKind::ReadOnly]);
            assert!(error.to_string().contains("connect to the primary"), "{error}");
        }
        // Long enough for a renewal, which is due after three seconds, to be refused too.
        sleep(TTL + ms(500)).await;
        world.server().reset(setting).unwrap();
        renewed(&held).await;
        for pod in [&lease, &other] {
            ticks(pod).await;
        }
    });
    kept(outcome.await.unwrap());
}

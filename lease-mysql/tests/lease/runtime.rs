//! What the application does to its own pool and runtime, and who depends on it.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use lease_core::{Held, Lease, Outcome, Ran, RepoErrorKind, Stop};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::Dialect;
use tokio::runtime::{Builder, Runtime};

use crate::support::{AS_IT_IS, chain, on_both, pool};
use crate::world::{TTL, World, assert_kind, kept, ms, now, secs, skips, sleep, ticks, until};

on_both!(
    c09_a_job_that_keeps_the_pools_only_connection_is_told_in_time,
    c09_with_connections_of_its_own_the_lease_is_kept,
    c20_a_job_that_blocks_every_worker_keeps_its_lease,
    c50_when_the_pools_runtime_is_shut_down_every_job_is_told_why,
);

fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .unwrap()
}

async fn c09_a_job_that_keeps_the_pools_only_connection_is_told_in_time(dialect: Dialect) {
    let world = World::shared(dialect).await;
    let pool = pool(&world.database.url, 1, AS_IT_IS);
    let lease = Lease::new(MysqlRepo::new(pool.clone()).unwrap());
    let told = Mutex::new(None);
    let outcome = lease.run("job", TTL, async |held| {
        let _kept = pool.get().await.unwrap();
        held.cancelled().await;
        *told.lock().unwrap() = Some((held.is_live(), held.remaining(), world.is_free("job")));
        sleep(TTL * 2).await;
    });
    let Outcome::Dropped {
        stop: Stop::Overdue {
            last_error: Some(error),
        },
        ..
    } = outcome.await.unwrap()
    else {
        panic!("f is dropped, and told what the renewals ran into")
    };
    assert_kind(&error, &[RepoErrorKind::Timeout]);
    assert!(
        chain(&error).contains("no connection was to be had"),
        "{}",
        chain(&error)
    );
    let (live, remaining, free) = told.lock().unwrap().take().expect("it was told");
    assert!(
        live && !free,
        "told while the lease is ours, {remaining:?} before the drop"
    );
    until("the row is free", secs(5), || world.is_free("job")).await;
    ticks(&lease).await;
}

async fn c09_with_connections_of_its_own_the_lease_is_kept(dialect: Dialect) {
    let world = World::shared(dialect).await;
    let pool = pool(&world.database.url, 1, AS_IT_IS);
    let lease = world.pod().await;
    let outcome = lease.run("job", TTL, async |held| {
        let _kept = pool.get().await.unwrap();
        sleep(TTL * 2).await;
        held.is_live()
    });
    assert!(kept(outcome.await.unwrap()));
}

async fn c20_a_job_that_blocks_every_worker_keeps_its_lease(dialect: Dialect) {
    let world = World::shared(dialect).await;
    // A runtime can't be waited for within another.
    tokio::task::block_in_place(|| blocks_every_worker(&world));
}

fn blocks_every_worker(world: &World) {
    let application = runtime(2);
    let lease = application.block_on(world.pod());
    let both = Arc::new(Barrier::new(2));
    let (other, (started, start)) = (both.clone(), channel());
    let running = application.spawn(async move {
        let f = async |held: Held| {
            started.send(()).unwrap();
            // The workers wait for each other here, so that none is left.
            both.wait();
            thread::sleep(TTL * 2);
            held.is_live()
        };
        lease.run("job", TTL, f).await.unwrap()
    });
    start.recv_timeout(secs(5)).unwrap();
    application.spawn(async move {
        other.wait();
        thread::sleep(TTL * 2);
    });
    let end = now() + TTL * 2 - ms(200);
    while now() < end {
        assert!(!world.is_free("job"), "renewed all along");
        thread::sleep(ms(100));
    }
    assert!(kept(application.block_on(running).unwrap()));
}

async fn c50_when_the_pools_runtime_is_shut_down_every_job_is_told_why(dialect: Dialect) {
    let world = World::shared(dialect).await;
    let application = runtime(1);
    let repo = MysqlRepo::with_handle(pool(&world.database.url, 2, AS_IT_IS), application.handle().clone());
    let lease = Lease::new(repo);
    let started = tokio::sync::Barrier::new(3);
    let f = async |held: Held| {
        started.wait().await;
        held.cancelled().await;
        held.is_live()
    };
    let shut_down = async {
        started.wait().await;
        application.shutdown_background();
    };
    let (one, two, ()) = tokio::join!(lease.run("one", TTL, &f), lease.run("two", TTL, &f), shut_down);
    for outcome in [one.unwrap(), two.unwrap()] {
        let Outcome::Ran(Ran {
            value: true,
            stop: Some(Stop::Overdue {
                last_error: Some(error),
            }),
            release: Err(release),
            ..
        }) = outcome
        else {
            panic!("told while the lease was ours, and why: {outcome:?}")
        };
        for error in [error, release] {
            assert_kind(&error, &[RepoErrorKind::Unavailable]);
            assert!(chain(&error).contains("has shut down"), "{}", chain(&error));
        }
    }
    assert_kind(&skips(&lease).await, &[RepoErrorKind::Unavailable]);
}

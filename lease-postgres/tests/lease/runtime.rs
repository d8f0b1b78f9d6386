//! What the application does to its own pool and runtime, and who depends on it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use lease_core::{Guard, Held, Lease, Outcome, Ran, RepoErrorKind, Stop};
use lease_postgres::PostgresRepo;
use tokio::runtime::{Builder, Runtime};

use crate::world::{TTL, World, assert_kind, chain, kept, ms, now, secs, skips, sleep, ticks, until};

fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c09_a_job_that_keeps_the_pools_only_connection_is_told_in_time() {
    let world = World::shared().await;
    let pool = world.pool(1);
    let lease = Lease::new(PostgresRepo::new(pool.clone()).unwrap());
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

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c09_with_connections_of_its_own_the_lease_is_kept() {
    let world = World::shared().await;
    let pool = world.pool(1);
    let lease = world.pod().await;
    let outcome = lease.run("job", TTL, async |held| {
        let _kept = pool.get().await.unwrap();
        sleep(TTL * 2).await;
        held.is_live()
    });
    assert!(kept(outcome.await.unwrap()));
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn c20_a_job_that_blocks_every_worker_keeps_its_lease() {
    let application = runtime(2);
    let (world, lease) = application.block_on(async {
        let world = World::shared().await;
        let lease = world.pod().await;
        (world, lease)
    });
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

/// Says what its guard's drop did.
struct Dropping {
    guard: Option<Guard>,
    said: std::sync::mpsc::Sender<bool>,
}

impl Drop for Dropping {
    fn drop(&mut self) {
        let guard = self.guard.take();
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(guard)));
        self.said.send(dropped.is_ok()).unwrap();
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn c33_a_guard_dropped_by_the_runtimes_shutdown_or_outside_of_one_frees_its_row() {
    let watcher = runtime(1);
    let world = watcher.block_on(World::shared());
    for in_shutdown in [true, false] {
        let application = runtime(2);
        let (said, dropped) = channel();
        let lease = application.block_on(world.pod());
        let guard = application.block_on(lease.try_acquire("job", secs(60))).unwrap();
        let dropping = Dropping { guard, said };
        assert!(!world.is_free("job"));
        if in_shutdown {
            application.spawn(async move {
                let _dropping = dropping;
                std::future::pending::<()>().await;
            });
            drop((lease, application));
        } else {
            thread::spawn(move || drop(dropping)).join().unwrap();
        }
        assert!(dropped.recv_timeout(secs(5)).unwrap(), "without a panic");
        // At once, that is: far from the ttl of a minute.
        watcher.block_on(until("the row is free", secs(5), || world.is_free("job")));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c50_when_the_pools_runtime_is_shut_down_every_job_is_told_why() {
    let world = World::shared().await;
    let application = runtime(1);
    let repo = PostgresRepo::with_handle(world.pool(2), application.handle().clone());
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

//! C21, C22, and the half of C52 in which the client is killed: processes that get real signals.

use std::future::{Future, poll_fn};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::pin::pin;

use lease_core::{Held, Lease, Outcome, Skip, Wait};
use lease_postgres::PostgresRepo;
use lease_testkit::{SpanLog, check};
use tokio::signal::unix::{SignalKind, signal};

use crate::child::{Part, Process};
use crate::world::{TTL, World, ms, now, secs, sleep, ticks, until, within};

/// A file that is removed with this.
struct File(PathBuf);

impl File {
    fn new(what: &str) -> Self {
        Self(std::env::temp_dir().join(format!("lease-{what}-{}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c21_a_job_that_ends_long_after_sigterm_is_renewed_until_then() {
    if let Some(part) = Part::of_this_process() {
        return ends_long_after_sigterm(part).await;
    }
    let world = World::shared().await;
    let file = File::new("sigterm");
    let log = SpanLog::open(file.path()).unwrap();
    let test = "process::c21_a_job_that_ends_long_after_sigterm_is_renewed_until_then";
    let mut first = Process::start(&[], test, world.database.url(), file.path());
    first.says("started");
    // A waiting acquire tries again after a third of its own ttl, or less.
    let lease = world.pod().await;
    let successor = lease.acquire("job", secs(2), Wait::Forever);
    let told = now();
    first.signal("TERM");
    let guard = within(TTL * 5, successor).await.unwrap();
    let started = now();
    drop(log.enter("job", guard.held().token()).unwrap());
    drop(guard);
    first.says("ended");
    first.ends();
    let spans = SpanLog::read(file.path()).unwrap();
    check(&spans).unwrap();
    assert_eq!(spans.len(), 2);
    let ended = spans[0].leave;
    assert!(ended.since(told) >= TTL * 2, "f was let end: {:?}", ended.since(told));
    assert!(started.since(ended) < secs(1), "{:?}", started.since(ended));
}

async fn ends_long_after_sigterm(part: Part) {
    Part::ends_with_its_parent();
    let mut sigterm = signal(SignalKind::terminate()).unwrap();
    let lease = Lease::new(PostgresRepo::connect(&part.url).await.unwrap());
    let log = SpanLog::open(&part.text).unwrap();
    let job = lease.run("job", TTL, async |held| {
        let inside = log.enter("job", held.token()).unwrap();
        Part::say("started");
        held.cancelled().await;
        let end = now() + TTL * 2;
        while now() < end {
            inside.still().unwrap();
            sleep(ms(50)).await;
        }
    });
    let shutdown = async {
        sigterm.recv().await;
        lease.shutdown(secs(60)).await
    };
    let (outcome, forsaken) = tokio::join!(job, shutdown);
    assert!(matches!(outcome.unwrap(), Outcome::Ran(_)) && forsaken.is_empty());
    Part::say("ended");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c22_a_process_stopped_past_its_expiry_polls_no_more_and_its_next_tick_acquires() {
    if let Some(part) = Part::of_this_process() {
        return is_stopped(part).await;
    }
    let world = World::shared().await;
    let file = File::new("sigstop");
    let log = SpanLog::open(file.path()).unwrap();
    let test = "process::c22_a_process_stopped_past_its_expiry_polls_no_more_and_its_next_tick_acquires";
    let mut stopped = Process::start(&[], test, world.database.url(), file.path());
    stopped.says("started");
    sleep(ms(300)).await;
    stopped.signal("STOP");
    let until_resumed = now() + TTL * 3;
    let lease = world.pod().await;
    let guard = within(TTL * 3, lease.acquire("job", TTL, Wait::Forever)).await.unwrap();
    let inside = log.enter("job", guard.held().token()).unwrap();
    sleep(until_resumed.since(now())).await;
    stopped.signal("CONT");
    stopped.says("dropped");
    // It has ticked meanwhile, and found us here.
    stopped.says("busy");
    assert!(guard.held().is_live());
    drop(inside);
    guard.release().await.unwrap();
    stopped.says("started");
    stopped.says("ended");
    stopped.ends();
    let spans = SpanLog::read(file.path()).unwrap();
    check(&spans).unwrap();
    let pids: Vec<u32> = spans.iter().map(|span| span.pid).collect();
    assert_eq!((pids.len(), pids[0]), (3, pids[2]), "{spans:?}");
}

async fn is_stopped(part: Part) {
    Part::ends_with_its_parent();
    let lease = Lease::new(PostgresRepo::connect(&part.url).await.unwrap());
    let log = SpanLog::open(&part.text).unwrap();
    let f = async |held: Held| {
        // What is logged is polls alone: dropping f is no poll, so that must not write.
        let inside = ManuallyDrop::new(log.enter("job", held.token()).unwrap());
        Part::say("started");
        let mut work = pin!(async {
            loop {
                sleep(ms(10)).await;
            }
        });
        poll_fn(|context| {
            inside.still().unwrap();
            work.as_mut().poll(context)
        })
        .await
    };
    let outcome = lease.run("job", TTL, f).await.unwrap();
    assert!(matches!(outcome, Outcome::<()>::Dropped { .. }), "{outcome:?}");
    Part::say("dropped");
    loop {
        let tick = lease.run("job", TTL, async |held| {
            let _inside = log.enter("job", held.token()).unwrap();
            Part::say("started");
        });
        match tick.await.unwrap() {
            Outcome::Ran(_) => break,
            Outcome::Skipped(Skip::Busy(Some(_))) => Part::say("busy"),
            other => panic!("{other:?}"),
        }
        sleep(ms(100)).await;
    }
    Part::say("ended");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c52_an_acquire_executed_after_its_client_was_killed_is_free_at_its_expiry() {
    if let Some(part) = Part::of_this_process() {
        return is_killed_while_it_asks(part).await;
    }
    let world = World::private().await;
    let test = "process::c52_an_acquire_executed_after_its_client_was_killed_is_free_at_its_expiry";
    let mut client = Process::start(&[], test, world.database.url(), "");
    client.says("warm");
    let [backend] = world.database.backend_pids().unwrap()[..] else {
        panic!("its pool has one connection")
    };
    let before = world.tenure("job");
    world.server().pause_backend(backend).unwrap();
    client.go_on("");
    client.says("asking");
    // It takes microseconds until the statement lies in the frozen server's socket; its undo is 0.6 s away.
    sleep(ms(200)).await;
    client.signal("KILL");
    drop(client);
    sleep(TTL).await;
    assert_eq!(world.tenure("job"), before, "nothing was executed yet");
    world.server().resume_backend(backend).unwrap();
    until("it is executed late", secs(5), || world.tenure("job") != before).await;
    let executed = now();
    assert!(!world.is_free("job"), "nobody is left to undo it");
    until("the row has expired", TTL + secs(1), || world.is_free("job")).await;
    assert!(now().since(executed) > TTL - secs(1), "not sooner");
    ticks(&world.pod().await).await;
}

async fn is_killed_while_it_asks(part: Part) {
    let lease = Lease::new(PostgresRepo::connect(&part.url).await.unwrap());
    ticks(&lease).await;
    Part::say("warm");
    Part::waits();
    let asking = lease.run("job", TTL, async |_| ());
    Part::say("asking");
    let _ = asking.await;
    Part::waits();
}

//! C21, C22, C46: processes that get real signals.

use std::future::{Future, poll_fn};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::pin::pin;

use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use lease_core::{Held, Lease, Outcome, Skip, Wait};
use lease_mysql::MysqlRepo;
use lease_mysql::fence::{self, FenceError};
use lease_testkit::servers::Dialect;
use lease_testkit::{SpanLog, check};
use tokio::signal::unix::{SignalKind, signal};

use crate::child::{Part, Process};
use crate::support::on_both;
use crate::world::{TTL, World, ms, now, secs, sleep, test_name, within};

on_both!(
    c21_a_job_that_ends_long_after_sigterm_is_renewed_until_then,
    c22_a_process_stopped_past_its_expiry_polls_no_more_and_its_next_tick_acquires,
    c46_what_a_process_stopped_past_its_expiry_has_written_is_refused_by_the_fence,
);

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

async fn c21_a_job_that_ends_long_after_sigterm_is_renewed_until_then(dialect: Dialect) {
    if let Some(part) = Part::of_this_process() {
        return ends_long_after_sigterm(part).await;
    }
    let world = World::shared(dialect).await;
    let file = File::new("sigterm");
    let log = SpanLog::open(file.path()).unwrap();
    let test = test_name(
        dialect,
        "process",
        "c21_a_job_that_ends_long_after_sigterm_is_renewed_until_then",
    );
    let mut first = Process::start(&[], &test, &world.database.url, file.path());
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
    let lease = Lease::new(MysqlRepo::connect(&part.url).await.unwrap());
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

async fn c22_a_process_stopped_past_its_expiry_polls_no_more_and_its_next_tick_acquires(dialect: Dialect) {
    if let Some(part) = Part::of_this_process() {
        return is_stopped(part).await;
    }
    let world = World::shared(dialect).await;
    let file = File::new("sigstop");
    let log = SpanLog::open(file.path()).unwrap();
    let test = test_name(
        dialect,
        "process",
        "c22_a_process_stopped_past_its_expiry_polls_no_more_and_its_next_tick_acquires",
    );
    let mut stopped = Process::start(&[], &test, &world.database.url, file.path());
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
    let lease = Lease::new(MysqlRepo::connect(&part.url).await.unwrap());
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

/// It is stopped between its write and the check, after which it commits.
async fn c46_what_a_process_stopped_past_its_expiry_has_written_is_refused_by_the_fence(dialect: Dialect) {
    if let Some(part) = Part::of_this_process() {
        return writes(part).await;
    }
    let world = World::shared(dialect).await;
    world
        .database
        .run("CREATE TABLE written (token BIGINT NOT NULL PRIMARY KEY) ENGINE = InnoDB");
    let test = test_name(
        dialect,
        "process",
        "c46_what_a_process_stopped_past_its_expiry_has_written_is_refused_by_the_fence",
    );
    let mut stopped = Process::start(&[], &test, &world.database.url, "");
    stopped.says("written");
    stopped.signal("STOP");
    let lease = world.pod().await;
    let guard = within(TTL * 3, lease.acquire("job", TTL * 10, Wait::Forever))
        .await
        .unwrap();
    stopped.signal("CONT");
    stopped.go_on("");
    stopped.says("stale");
    stopped.ends();
    assert_eq!(
        world.database.run("SELECT COUNT(*) FROM written"),
        ["0"],
        "it did not commit"
    );
    // The present holder's write does.
    let mut connection = AsyncMysqlConnection::establish(&world.database.url).await.unwrap();
    write(&mut connection, guard.held(), async || ()).await.unwrap();
    assert_eq!(world.database.run("SELECT COUNT(*) FROM written"), ["1"]);
    guard.release().await.unwrap();
}

/// Writes, does something else, and commits if the fence lets it.
async fn write(
    connection: &mut AsyncMysqlConnection,
    held: &Held,
    between: impl AsyncFnOnce(),
) -> Result<(), FenceError> {
    use diesel_async::{AnsiTransactionManager, TransactionManager};
    AnsiTransactionManager::begin_transaction(connection).await?;
    let text = format!("INSERT INTO written (token) VALUES ({})", held.token());
    connection.batch_execute(&text).await?;
    between().await;
    match fence::check(connection, held).await {
        Ok(()) => Ok(AnsiTransactionManager::commit_transaction(connection).await?),
        Err(error) => {
            AnsiTransactionManager::rollback_transaction(connection).await?;
            Err(error)
        }
    }
}

async fn writes(part: Part) {
    let mut connection = AsyncMysqlConnection::establish(&part.url).await.unwrap();
    let lease = Lease::new(MysqlRepo::connect(&part.url).await.unwrap());
    // A guard alone, since f would be dropped before it could write.
    let guard = lease.try_acquire("job", TTL).await.unwrap().unwrap();
    let written = write(&mut connection, guard.held(), async || {
        Part::say("written");
        Part::waits();
    });
    match written.await {
        Err(FenceError::Stale { .. }) => Part::say("stale"),
        other => panic!("{other:?}"),
    }
}

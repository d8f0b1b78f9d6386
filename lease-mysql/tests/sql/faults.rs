//! Lost replies, dropped futures, servers that stop, freeze or turn read-only: no wrong answer, and it heals itself.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use diesel_async::SimpleAsyncConnection;
use lease_core::{Acquire, Lease, Release, Renew, Repo, RepoErrorKind};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::{Dialect, Mysql, Proxy, Settings};
use mysql_async::prelude::Queryable;
use tokio::time::timeout;

use crate::support::{AS_IT_IS, Database, chain, claim, on_both, pool, private_server};

const S: Duration = Duration::from_secs(1);

on_both!(
    a_granted_acquire_whose_reply_is_lost_is_undone,
    an_acquire_dropped_at_any_await_point_leaves_nothing_held,
    statements_that_run_into_their_limit_leave_right_answers_and_a_whole_pool,
    connections_that_died_in_the_pool_are_not_noticed_by_anyone,
    a_release_whose_reply_is_lost_was_one,
    a_server_that_turns_read_only_and_back_needs_no_restart,
    a_server_that_was_away_is_used_again,
    a_frozen_server_times_out_and_is_used_again,
    an_acquire_executed_long_after_its_client_gave_up_is_undone,
    statements_are_prepared_once_per_connection_and_read_one_row,
);

/// C27. The undo is sent at once and again after a second; without it, it would take the ttl of a minute. Five seconds
/// leave room for a machine that is busy with builds.
async fn a_granted_acquire_whose_reply_is_lost_is_undone(dialect: Dialect) {
    let (database, other) = Database::migrated(dialect).await;
    let proxy = Proxy::before(&database.url).await.unwrap();
    let repo = MysqlRepo::connect(&proxy.url).await.unwrap();
    let lease = Lease::new(repo);
    // Kept, so that the reply to lose is not that of its release.
    let _guard = lease.try_acquire("warms the pool", 60 * S).await.unwrap();
    // The first is that of the look, the second that of the insert.
    proxy.lose_reply_after(1);
    // It is tried again on a fresh connection, finds its own row, and so is granted.
    let guard = lease.try_acquire("job", 60 * S).await.unwrap();
    assert!(guard.is_some(), "the row was its own");
    drop(guard);
    let free = async { while !matches!(other.acquire(&claim("job")).await.unwrap(), Acquire::Granted(_)) {} };
    timeout(5 * S, free).await.expect("it is released");

    // Nothing comes back any more, on no connection: the grant stands, and the keeper undoes it when it can again.
    // Two of them are those to the look and to preparing the insert.
    proxy.lose_all_replies_after(2);
    assert!(lease.try_acquire("lost", 60 * S).await.is_err());
    assert!(
        matches!(other.acquire(&claim("lost")).await.unwrap(), Acquire::Busy(Some(_))),
        "it was committed"
    );
    proxy.heal();
    let free = async { while !matches!(other.acquire(&claim("lost")).await.unwrap(), Acquire::Granted(_)) {} };
    timeout(5 * S, free).await.expect("the keeper undoes it");
}

/// C29.
async fn an_acquire_dropped_at_any_await_point_leaves_nothing_held(dialect: Dialect) {
    let (_database, other) = Database::migrated(dialect).await;
    for warm in [false, true] {
        let mut polls = 1;
        loop {
            let repo = other.clone();
            if warm {
                repo.acquire(&claim("warms the pool")).await.unwrap();
            }
            let dropped = claim("job");
            let answer = DroppedAfter {
                future: pin!(repo.acquire(&dropped)),
                polls,
            }
            .await;
            // As the keeper: its undo is repeated, since the statement may still be executed.
            let next = claim("job");
            let undone = async {
                repo.release(&dropped).await.unwrap();
                while !matches!(other.acquire(&next).await.unwrap(), Acquire::Granted(_)) {
                    repo.release(&dropped).await.unwrap();
                }
            };
            timeout(5 * S, undone).await.expect("the row is free again");
            assert_eq!(other.release(&next).await.unwrap(), Release::Released);
            // The pool gives right answers: this lease is held by one and not by the other.
            let (held, foreign) = (claim("held"), claim("held"));
            assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
            for _ in 0..5 {
                assert_ne!(repo.renew(&foreign).await.unwrap(), Renew::Renewed);
                assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
            }
            repo.release(&held).await.unwrap();
            match answer {
                None => polls += 1,
                // A quick server has answered before the first poll looks: then nothing was dropped.
                Some(answer) if polls == 1 => drop(answer.unwrap()),
                Some(answer) => {
                    answer.unwrap();
                    break;
                }
            }
        }
    }
}

struct DroppedAfter<'a, F> {
    future: Pin<&'a mut F>,
    polls: u32,
}

impl<F: Future> Future for DroppedAfter<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        match self.future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.polls == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// L8. A connection with half an answer in it, back in its pool, made every renewal of somebody else's lease "renewed". Real
/// waits of a few milliseconds each, which are the limits.
async fn statements_that_run_into_their_limit_leave_right_answers_and_a_whole_pool(dialect: Dialect) {
    let (database, own) = Database::migrated(dialect).await;
    let foreign_pool = pool(&database.url, 4, AS_IT_IS);
    let foreign = MysqlRepo::new(foreign_pool.clone()).unwrap();
    let (held, locked, stranger) = (claim("held"), claim("locked"), claim("held"));
    for claim in [&held, &locked] {
        assert!(matches!(own.acquire(claim).await.unwrap(), Acquire::Granted(_)));
    }
    let mut locker = database.sql().await;
    locker.query_drop("BEGIN").await.unwrap();
    let lock = "SELECT 1 FROM task_leases WHERE name = 'locked' FOR UPDATE";
    locker.query_drop(lock).await.unwrap();
    let mut timeouts = 0;
    for round in 0..500_u64 {
        if round % 50 == 0 {
            // Else those who gave up, whose sessions wait on, are more than the server takes.
            locker.query_drop("COMMIT").await.unwrap();
            locker.query_drop("BEGIN").await.unwrap();
            locker.query_drop(lock).await.unwrap();
        }
        for repo in [&own, &foreign] {
            let mut late = locked.clone();
            // From within a round trip to far beyond it.
            late.limit = Duration::from_micros(200 + round * 10);
            timeouts += u32::from(
                repo.renew(&late)
                    .await
                    .is_err_and(|e| e.kind() == RepoErrorKind::Timeout),
            );
            if round % 10 == 0 {
                assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
                assert!(matches!(repo.renew(&stranger).await.unwrap(), Renew::Lost(_)));
                assert!(matches!(repo.acquire(&stranger).await.unwrap(), Acquire::Busy(Some(_))));
            }
        }
    }
    assert_eq!(timeouts, 1_000, "each runs into its limit");
    locker.query_drop("COMMIT").await.unwrap();
    for repo in [&own, &foreign] {
        for _ in 0..100 {
            assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
            assert!(matches!(repo.renew(&stranger).await.unwrap(), Renew::Lost(_)));
        }
    }
    let mut all = Vec::new();
    for _ in 0..4 {
        let mut connection = timeout(5 * S, foreign_pool.get()).await.unwrap().unwrap();
        connection.batch_execute("DO 1").await.unwrap();
        all.push(connection);
    }
}

/// 2006 and 2013: the pool can't see that an idle connection has died. Whoever meets one goes on at once.
async fn connections_that_died_in_the_pool_are_not_noticed_by_anyone(dialect: Dialect) {
    let (database, own) = Database::migrated(dialect).await;
    let foreign_pool = pool(&database.url, 3, AS_IT_IS);
    let foreign = MysqlRepo::new(foreign_pool.clone()).unwrap();
    let held = claim("job");
    assert!(matches!(own.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    for repo in [&own, &foreign] {
        for _ in 0..5 {
            // All connections that the pool may have, each used before.
            for _ in 0..2 {
                let all: Vec<_> = (0..4)
                    .map(|_| tokio::spawn(renewed(repo.clone(), held.clone())))
                    .collect();
                for one in all {
                    one.await.unwrap();
                }
            }
            for id in database.sessions() {
                // It may have ended by itself.
                let _ = database.sql().await.query_drop(format!("KILL {id}")).await;
            }
            assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
            assert!(matches!(
                repo.acquire(&claim("job")).await.unwrap(),
                Acquire::Busy(Some(_))
            ));
        }
    }
    // The same where the server ends what was idle for long, and says so as it goes: real waits of two seconds.
    let pool = pool(&database.url, 1, "SET wait_timeout = 1");
    let idle = MysqlRepo::new(pool).unwrap();
    for _ in 0..2 {
        assert_eq!(idle.renew(&held).await.unwrap(), Renew::Renewed);
        let mut other = database.sql().await;
        other.query_drop("DO SLEEP(2)").await.unwrap();
    }
    assert_eq!(idle.release(&held).await.unwrap(), Release::Released);
}

async fn renewed(repo: MysqlRepo, held: lease_core::Claim) {
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
}

/// The connection breaks after the commit, and the next try finds the row released by itself.
async fn a_release_whose_reply_is_lost_was_one(dialect: Dialect) {
    let (database, other) = Database::migrated(dialect).await;
    let proxy = Proxy::before(&database.url).await.unwrap();
    let repo = MysqlRepo::connect(&proxy.url).await.unwrap();
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    repo.renew(&held).await.unwrap();
    // The first is that to preparing the statement.
    proxy.lose_reply_after(1);
    assert_eq!(repo.release(&held).await.unwrap(), Release::Released);
    assert_eq!(
        repo.release(&held).await.unwrap(),
        Release::NotHeld,
        "the second is none"
    );
    assert!(matches!(
        other.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
}

/// C26: 1290 of the server, and 1792 of sessions that begin so.
async fn a_server_that_turns_read_only_and_back_needs_no_restart(dialect: Dialect) {
    let server = private_server(dialect);
    let database = Database::on(&server);
    // A superuser may write to a read-only server.
    let user = database.name().to_owned();
    database.run(&format!("CREATE USER {user}; GRANT ALL ON `{user}`.* TO {user}"));
    let (_, place) = database.url.split_once('@').unwrap();
    let repo = MysqlRepo::connect(&format!("mysql://{user}@{place}")).await.unwrap();
    repo.migrate().await.unwrap();
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    let own = || database.sessions();
    for (variable, value) in [("read_only", "ON"), (read_only_sessions(dialect), "ON")] {
        let before = own();
        server.set(variable, value).unwrap();
        if variable != "read_only" {
            // Sessions that are open keep what they began with.
            for id in own() {
                server.sql(&format!("KILL {id}")).unwrap();
            }
        }
        for error in [
            repo.acquire(&held).await.unwrap_err(),
            repo.renew(&held).await.unwrap_err(),
            repo.release(&held).await.unwrap_err(),
            repo.acquire(&claim("new")).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), RepoErrorKind::ReadOnly, "{variable}: {}", chain(&error));
            assert!(!error.may_have_executed() || variable != "read_only", "{variable}");
            assert!(
                own().iter().all(|id| !before.contains(id)),
                "the connection lost its place in the pool"
            );
        }
        assert!(
            matches!(repo.acquire(&claim("job")).await.unwrap(), Acquire::Busy(Some(_))),
            "a loser only reads"
        );
        repo.migrate().await.expect("it only looks when nothing is missing");
        server.reset(variable).unwrap();
        // The session that only read has stayed.
        let after = repo.renew(&held).await;
        assert!(
            matches!(&after, Ok(Renew::Renewed)) || after.as_ref().is_err_and(|e| e.kind() == RepoErrorKind::ReadOnly),
            "{after:?}"
        );
        assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    }
    server.set("read_only", "ON").unwrap();
    database.run("DROP TABLE task_leases");
    let error = repo.migrate().await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::ReadOnly, "{}", chain(&error));
}

fn read_only_sessions(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MariaDb => "tx_read_only",
        _ => "transaction_read_only",
    }
}

/// C24: the server is stopped, and started again.
async fn a_server_that_was_away_is_used_again(dialect: Dialect) {
    let server = private_server(dialect);
    let repo = MysqlRepo::connect(server.url())
        .await
        .unwrap()
        .table("lease_test")
        .unwrap();
    repo.migrate().await.unwrap();
    let mut held = claim("job");
    held.ttl = 600 * S;
    repo.acquire(&held).await.unwrap();
    server.stop().unwrap();
    for _ in 0..5 {
        let error = repo.renew(&held).await.unwrap_err();
        assert_eq!(error.kind(), RepoErrorKind::Unavailable, "{}", chain(&error));
    }
    server.start().unwrap();
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
}

/// C10 and C52, with the server frozen: each call returns within its bound, and later the answers are right.
async fn a_frozen_server_times_out_and_is_used_again(dialect: Dialect) {
    let server = private_server(dialect);
    let repo = MysqlRepo::connect(server.url())
        .await
        .unwrap()
        .table("lease_test")
        .unwrap();
    repo.migrate().await.unwrap();
    let mut held = claim("job");
    held.ttl = 600 * S;
    repo.acquire(&held).await.unwrap();
    held.limit = Duration::from_millis(300);
    server.pause().unwrap();
    let mut late = claim("late");
    late.limit = held.limit;
    for _ in 0..3 {
        // Real waits: the limit is what is tested, with room for a machine under load.
        let error = timeout(5 * S, repo.renew(&held)).await.unwrap().unwrap_err();
        assert!(matches!(error.kind(), RepoErrorKind::Timeout), "{}", chain(&error));
        timeout(5 * S, repo.acquire(&late)).await.unwrap().unwrap_err();
    }
    server.resume().unwrap();
    held.limit = 5 * S;
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    // The acquires without an answer may have been executed since; the repeated undo frees the name.
    let undone = async {
        while !matches!(repo.acquire(&claim("late")).await.unwrap(), Acquire::Granted(_)) {
            repo.release(&late).await.unwrap();
        }
    };
    timeout(5 * S, undone).await.expect("the name is free again");
}

/// C52. The acquire waits in the server for a row that somebody makes and takes back; its client gives up, and the undo finds nothing
/// yet. Then it is executed.
async fn an_acquire_executed_long_after_its_client_gave_up_is_undone(dialect: Dialect) {
    let (database, other) = Database::migrated(dialect).await;
    let lease = Lease::new(database.repo().await);
    let _guard = lease.try_acquire("warms the keeper's pool", 60 * S).await.unwrap();
    let mut locker = database.sql().await;
    locker.query_drop("BEGIN").await.unwrap();
    let made = "INSERT INTO task_leases (name, holder, acquired_at, expires_at) \
                VALUES ('job', 'nobody', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))";
    locker.query_drop(made).await.unwrap();
    // A short ttl has a short limit, and the undo goes on for two of it.
    assert!(lease.try_acquire("job", 4 * S).await.is_err());
    locker.query_drop("ROLLBACK").await.unwrap();
    // Far below the ttl, and above the second after which the undo is repeated.
    let free = async {
        while !matches!(other.acquire(&claim("job")).await.unwrap(), Acquire::Granted(_)) {
            tokio::task::yield_now().await;
        }
    };
    timeout(3 * S, free).await.expect("the keeper undoes it");
}

/// What is prepared anew at each use takes twice as many round trips; and a statement that reads a row other than its own locks it.
async fn statements_are_prepared_once_per_connection_and_read_one_row(dialect: Dialect) {
    // Where MySQL counts its statements.
    let server = Mysql::private(dialect, &Settings::default().with("performance_schema", "ON")).unwrap();
    let database = Database::on(&server);
    let repo = database.repo().await.connections(1).unwrap();
    repo.migrate().await.unwrap();
    let named = repo.clone().table(&format!("{}.task_leases", database.name())).unwrap();
    database.run(
        "INSERT INTO task_leases (name, holder, acquired_at, expires_at) \
         SELECT CONCAT('row ', ROW_NUMBER() OVER ()), 'x', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1 DAY \
         FROM information_schema.columns LIMIT 1000",
    );
    assert_eq!(database.run("SELECT COUNT(*) FROM task_leases"), ["1000"]);
    let mut sql = database.sql().await;
    let mut counted = async |what: &str| {
        let count = format!("SHOW GLOBAL STATUS LIKE '{what}'");
        let row: (String, u64) = sql.query_first(count).await.unwrap().unwrap();
        row.1
    };
    let before = counted("Handler_read_rnd_next").await;
    database.run("UPDATE task_leases SET note = 'x' WHERE CONCAT(name, '') = 'row 1'");
    assert!(
        counted("Handler_read_rnd_next").await >= before + 1_000,
        "such a statement is noticed"
    );
    for repo in [&repo, &named] {
        let round = async || {
            let held = claim("job");
            assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
            assert!(matches!(
                repo.acquire(&claim("job")).await.unwrap(),
                Acquire::Busy(Some(_))
            ));
            assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
            assert_eq!(repo.release(&held).await.unwrap(), Release::Released);
        };
        // On a row that is absent, and on one that is free.
        round().await;
        round().await;
        let (prepared, read) = (
            counted("Com_stmt_prepare").await,
            counted("Handler_read_rnd_next").await,
        );
        for _ in 0..10 {
            round().await;
        }
        assert_eq!(counted("Com_stmt_prepare").await, prepared);
        // The look at the counters reads some, too. Fifty statements that read all rows would be far above.
        let read = counted("Handler_read_rnd_next").await - read;
        assert!(read < 10_000, "{read} rows were read one after the other");
    }
}

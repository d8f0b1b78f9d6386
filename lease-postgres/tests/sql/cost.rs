//! What an operation costs the server: one statement, prepared once; nothing written by who loses; renewals in place.
//!
//! On a server of its own, whose transaction ids and statistics nobody else moves.

use std::time::Duration;

use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use lease_core::{Acquire, Release, Renew, Repo};
use lease_postgres::PostgresRepo;
use lease_testkit::servers::Postgres;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::support::{Database, claim, private_server, sql};

async fn counted(server: &Postgres) -> (PostgresRepo, Client) {
    let repo = PostgresRepo::connect(server.url()).await.unwrap();
    repo.migrate().await.unwrap();
    let sql = sql(server.url()).await;
    sql.batch_execute("CREATE EXTENSION pg_stat_statements").await.unwrap();
    (repo, sql)
}

/// Calls of statements on the table since the last reset, and the write-ahead log they made.
async fn statements(sql: &Client) -> (i64, i64) {
    let row = sql
        .query_one(
            "SELECT COALESCE(sum(calls), 0)::bigint, COALESCE(sum(wal_bytes), 0)::bigint FROM pg_stat_statements \
             WHERE query LIKE '%task_leases%' AND query NOT LIKE '%pg_stat%'",
            &[],
        )
        .await
        .unwrap();
    sql.batch_execute("SELECT pg_stat_statements_reset()").await.unwrap();
    (row.get(0), row.get(1))
}

async fn next_xid(sql: &Client) -> i64 {
    let row = sql
        .query_one("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint", &[])
        .await;
    row.unwrap().get(0)
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn each_operation_is_one_statement_and_a_loser_writes_nothing() {
    let server = private_server();
    let (repo, sql) = counted(&server).await;
    let (held, other) = (claim("job"), claim("job"));
    statements(&sql).await;

    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    assert_eq!(statements(&sql).await.0, 1, "win");
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    assert_eq!(statements(&sql).await.0, 1, "renew");

    let xid = next_xid(&sql).await;
    for _ in 0..100 {
        assert!(matches!(repo.acquire(&other).await.unwrap(), Acquire::Busy(Some(_))));
    }
    assert_eq!(
        next_xid(&sql).await,
        xid,
        "a loser takes no transaction id, so it locks no row either"
    );
    assert_eq!(
        statements(&sql).await,
        (100, 0),
        "lose: one statement each, and no write-ahead log"
    );

    assert_eq!(repo.release(&held).await.unwrap(), Release::Released);
    assert_eq!(statements(&sql).await.0, 1, "release");
    assert!(matches!(repo.acquire(&other).await.unwrap(), Acquire::Granted(_)));
    assert_eq!(statements(&sql).await.0, 1, "take over");
}

/// Whatever the planner assumes, and also once the table has grown.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_lost_acquire_looks_at_the_table_once() {
    let (database, repo) = Database::migrated().await;
    repo.acquire(&claim("job")).await.unwrap();
    let sql = database.sql().await;
    let (_, acquire) = include_str!("../statements.sql").split_once("-- Acquire\n").unwrap();
    let acquire = acquire.lines().next().unwrap();
    sql.batch_execute(&format!("PREPARE acquire(text, text, bigint) AS {acquire}"))
        .await
        .unwrap();
    for grown in [false, true] {
        if grown {
            sql.batch_execute(
                "INSERT INTO task_leases (name, holder, acquired_at, expires_at) \
                 SELECT n::text, 'pod', now(), now() FROM generate_series(1, 10000) n; ANALYZE task_leases",
            )
            .await
            .unwrap();
        }
        for plans in ["force_custom_plan", "force_generic_plan"] {
            let explain = format!(
                "SET plan_cache_mode = {plans}; SET enable_seqscan = off; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) \
                 EXECUTE acquire('job', 'pod/other', 1000000)"
            );
            let plan = lines(&sql, &explain).await;
            let accesses: Vec<&String> = plan
                .iter()
                .filter(|line| line.contains("Scan") && line.contains(" on task_leases"))
                .collect();
            let executed: Vec<_> = accesses
                .iter()
                .filter(|line| !line.contains("never executed"))
                .collect();
            assert!(accesses.len() > 3, "{plan:#?}");
            assert!(
                matches!(executed[..], [only] if only.contains("Index") && only.contains("loops=1")),
                "{plan:#?}"
            );
        }
    }
}

/// What the text answers, a line for each row.
async fn lines(sql: &Client, text: &str) -> Vec<String> {
    let answer = sql.simple_query(text).await.unwrap();
    let rows = answer.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    rows.collect()
}

/// The planner does not know how many are asked for. Before, it had each of a thousand compared with all others, and 10,000 held
/// leases took a server with two cores most of a second every ten.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_thousand_renewals_in_one_statement_are_not_compared_with_each_other() {
    let (database, _repo) = Database::migrated().await;
    let sql = database.sql().await;
    let (_, renew_all) = include_str!("../statements.sql").split_once("-- RenewAll\n").unwrap();
    let renew_all = renew_all.lines().next().unwrap();
    let array = |each: &dyn Fn(u32) -> String| (1..=1_000).map(each).collect::<Vec<_>>().join(",");
    let (names, ttls) = (array(&|n| n.to_string()), array(&|n| (60_000_000 + n).to_string()));
    let holders = array(&|_| "pod".to_owned());
    for state in ["", "ANALYZE task_leases"] {
        // As a keeper does it, which prepares before it holds much.
        let prepare = format!("DEALLOCATE ALL; PREPARE renew_all(text[], text[], bigint[]) AS {renew_all}");
        sql.batch_execute(&prepare).await.unwrap();
        let rows = "TRUNCATE task_leases; INSERT INTO task_leases (name, holder, acquired_at, expires_at) \
                    SELECT n::text, 'pod', now(), now() + interval '1 hour' FROM generate_series(1, 10000) n";
        sql.batch_execute(&format!("{rows}; {state}")).await.unwrap();
        for plans in ["force_custom_plan", "force_generic_plan"] {
            let explain = format!(
                "SET plan_cache_mode = {plans}; SET enable_seqscan = off; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) \
                 EXECUTE renew_all('{{{names}}}', '{{{holders}}}', '{{{ttls}}}')"
            );
            let plan = lines(&sql, &explain).await;
            let is_asked = |line: &&String| line.contains("CTE Scan on asked") && line.contains("rows=1000");
            assert!(plan.iter().filter(is_asked).count() >= 3, "{plan:#?}");
            for line in &plan {
                let again = line.contains("CTE Scan") && !line.contains("loops=1)");
                assert!(
                    !again && !line.contains("Rows Removed by Join Filter"),
                    "{line}: {plan:#?}"
                );
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn renewals_are_heap_only() {
    let server = private_server();
    let (repo, sql) = counted(&server).await;
    let held = claim("job");
    repo.acquire(&held).await.unwrap();
    for _ in 0..500 {
        assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
    }
    drop(repo);
    // Sessions report when they end, which is soon but not at once.
    let (updates, hot) = loop {
        let counts = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'task_leases'";
        let row = sql.query_one(counts, &[]).await.unwrap();
        let (updates, hot): (i64, i64) = (row.get(0), row.get(1));
        if updates >= 500 {
            break (updates, hot);
        }
        sql.batch_execute("SELECT pg_sleep(0.05), pg_stat_clear_snapshot()")
            .await
            .unwrap();
    };
    assert_eq!(hot, updates);
    let size: i64 = sql
        .query_one("SELECT pg_relation_size('task_leases')", &[])
        .await
        .unwrap()
        .get(0);
    assert!(size <= 16_384, "the dead versions are cleared as renewals go: {size}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn statements_are_prepared_once_per_connection() {
    #[derive(diesel::QueryableByName)]
    struct Prepared {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        texts: i64,
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        uses: i64,
    }

    let server = private_server();
    let (repo, _) = counted(&server).await;
    drop(repo);
    let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new(server.url());
    let pool = Pool::builder(manager).max_size(1).build().unwrap();
    let repo = PostgresRepo::new(pool.clone()).unwrap();
    for _ in 0..10 {
        let mut held = claim("job");
        held.ttl = Duration::from_secs(60);
        repo.acquire(&held).await.unwrap();
        repo.renew(&held).await.unwrap();
        repo.release(&held).await.unwrap();
    }
    let shown = "SELECT count(*) AS texts, sum(generic_plans + custom_plans)::bigint AS uses \
                 FROM pg_prepared_statements WHERE statement LIKE '%task_leases%' AND statement NOT LIKE '%prepared%'";
    let prepared: Vec<Prepared> = diesel::sql_query(shown)
        .load(&mut pool.get().await.unwrap())
        .await
        .unwrap();
    assert_eq!((prepared[0].texts, prepared[0].uses), (3, 30));
}

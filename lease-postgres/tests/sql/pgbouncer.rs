//! Poolers that keep prepared statements apart are used with care, and those that don't are refused.
//!
//! PgBouncer before 1.21 knows nothing of prepared statements, and a newer one does the same when it is told
//! `max_prepared_statements = 0`.

use std::error::Error;

use lease_core::{Acquire, Lease, Outcome, Ran, Release, Repo, RepoErrorKind, Wait};
use lease_postgres::PostgresRepo;
use lease_testkit::servers::{Pooler, Postgres};
use tokio_postgres::SimpleQueryMessage;

use crate::support::{Database, chain, claim, sql};

fn pooler(settings: &[(&str, &str)]) -> Pooler {
    Pooler::before(Postgres::shared().unwrap(), settings).unwrap()
}

async fn is_refused(settings: &[(&str, &str)]) {
    let pooler = pooler(settings);
    let database = Database::empty().through(&pooler);
    // Also when all sessions are known to it from clients before.
    for _ in 0..3 {
        let error = PostgresRepo::connect(&database.url).await.unwrap_err();
        assert_eq!(error.kind(), RepoErrorKind::Config, "{}", chain(&error));
        assert!(!error.may_have_executed());
        let why = error.source().unwrap().to_string();
        assert!(why.contains("PgBouncer must be 1.21 or newer"), "{why}");
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn pgbouncer_that_mixes_up_prepared_statements_is_refused() {
    is_refused(&[("max_prepared_statements", "0")]).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn pgbouncer_that_mixes_up_prepared_statements_and_ignores_options_is_refused() {
    let settings = [
        ("max_prepared_statements", "0"),
        ("ignore_startup_parameters", "options"),
    ];
    is_refused(&settings).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn pgbouncer_in_another_mode_is_refused() {
    for mode in ["session", "statement"] {
        is_refused(&[("max_prepared_statements", "200"), ("pool_mode", mode)]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn pgbouncer_that_ignores_options_is_as_good_as_one_that_refuses_them() {
    let pooler = pooler(&[
        ("max_prepared_statements", "200"),
        ("ignore_startup_parameters", "options"),
    ]);
    let database = Database::empty().through(&pooler);
    let repo = database.repo().await;
    repo.migrate().await.unwrap();
    let lease = Lease::new(repo);
    let outcome = lease.run("job", claim("job").ttl, async |_| ()).await.unwrap();
    assert!(matches!(
        outcome,
        Outcome::Ran(Ran {
            stop: None,
            release: Ok(Release::Released),
            ..
        })
    ));
}

/// A `SET` would stay in a session that the pooler gives to others.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn settings_of_ours_do_not_reach_other_clients_of_pgbouncer() {
    let pooler = pooler(&[("max_prepared_statements", "200")]);
    let database = Database::empty().through(&pooler);
    let repo = database.repo().await;
    repo.migrate().await.unwrap();
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
    let lease = Lease::new(repo);
    let guard = lease.acquire("guarded", claim("job").ttl, Wait::Forever).await.unwrap();

    let other = sql(&database.url).await;
    let settings = "SELECT concat_ws(' ', pg_backend_pid(), current_setting('statement_timeout'), \
                    current_setting('lock_timeout'), current_setting('enable_seqscan'), current_setting('lease.session', true))";
    let mut seen = Vec::new();
    // Sessions are handed out in turn.
    for _ in 0..50 {
        for message in other.simple_query(settings).await.unwrap() {
            if let SimpleQueryMessage::Row(row) = message {
                let (pid, found) = row.get(0).unwrap().split_once(' ').unwrap();
                assert_eq!(found, "0 0 on", "as the server has them by default");
                seen.push(pid.to_owned());
            }
        }
    }
    assert_eq!(seen.len(), 50);
    guard.release().await.unwrap();
}

//! Several hosts in one URL, and roles and servers that are short of something.

use std::time::Duration;

use lease_core::{Acquire, Lease, Outcome, Renew, Repo, RepoErrorKind};
use lease_postgres::PostgresRepo;
use tokio::net::TcpListener;

use crate::support::{Database, chain, claim, private_server};

/// What stands before and after the host in a URL.
fn around_the_host(url: &str) -> (&str, &str) {
    let host = url.find('@').unwrap() + 1;
    let end = host + url[host..].find('/').unwrap();
    (&url[..host], &url[end..])
}

fn host(url: &str) -> &str {
    let (before, after) = around_the_host(url);
    &url[before.len()..url.len() - after.len()]
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn the_writable_one_of_several_hosts_is_used_also_after_they_changed_places() {
    let (first, second) = (private_server(), private_server());
    for server in [&first, &second] {
        server
            .sql("CREATE ROLE pod LOGIN SUPERUSER PASSWORD 'the same'")
            .unwrap();
    }
    let url = format!(
        "postgres://pod:the%20same@{},{}/postgres?target_session_attrs=read-write",
        host(first.url()),
        host(second.url())
    );
    let held = claim("job");
    for (standby, primary) in [(&first, &second), (&second, &first)] {
        primary.set("default_transaction_read_only", "off").unwrap();
        standby.set("default_transaction_read_only", "on").unwrap();
        let repo = PostgresRepo::connect(&url).await.unwrap();
        repo.migrate().await.unwrap();
        assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
        let found = primary.sql("SELECT holder FROM task_leases").unwrap();
        assert_eq!(found, [held.holder.as_str()]);
    }
}

/// Each try of a lease has less time than a host may take to say nothing.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_primary_that_freezes_costs_a_tick_and_then_the_next_host_is_used() {
    let (first, second) = (private_server(), private_server());
    for server in [&first, &second] {
        server
            .sql("CREATE ROLE pod LOGIN SUPERUSER PASSWORD 'the same'")
            .unwrap();
        let url = format!("postgres://pod:the%20same@{}/postgres", host(server.url()));
        PostgresRepo::connect(&url).await.unwrap().migrate().await.unwrap();
    }
    let hosts = format!("{},{}", host(first.url()), host(second.url()));
    let url = format!("postgres://pod:the%20same@{hosts}/postgres");
    let lease = Lease::new(PostgresRepo::connect(&url).await.unwrap());
    let ttl = Duration::from_secs(3);
    assert!(matches!(lease.run("job", ttl, async |_| ()).await, Ok(Outcome::Ran(_))));
    first.pause().unwrap();
    let mut skipped = 0;
    while !matches!(lease.run("job", ttl, async |_| ()).await, Ok(Outcome::Ran(_))) {
        skipped += 1;
        // The connection that froze, then one try to open another there.
        assert!(skipped <= 2, "{skipped} ticks were skipped");
    }
    assert!(skipped > 0 && second.sql("SELECT 1 FROM task_leases").unwrap().len() == 1);
    first.resume().unwrap();
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_host_that_answers_nothing_leaves_time_for_the_next() {
    let database = Database::empty();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (before, after) = around_the_host(&database.url);
    let url = format!(
        "{before}{},{}{after}",
        silent.local_addr().unwrap(),
        host(&database.url)
    );
    let repo = PostgresRepo::connect(&url).await.unwrap();
    repo.migrate().await.unwrap();
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn time_limits_of_the_role_are_too_short_for_nobody() {
    let (database, repo) = Database::migrated().await;
    database.set("statement_timeout = 50");
    database.set("lock_timeout = 20");
    let held = claim("job");
    let repo = PostgresRepo::connect(&database.url).await.map(|_| repo).unwrap();
    repo.acquire(&held).await.unwrap();
    let mut locker = database.sql().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("SET LOCAL statement_timeout = 0; SELECT 1 FROM task_leases FOR UPDATE")
        .await
        .unwrap();
    let (other, renewed) = (repo.clone(), held.clone());
    let waiting = tokio::spawn(async move { other.renew(&renewed).await.unwrap() });
    lock.batch_execute("SELECT pg_sleep(0.5)").await.unwrap();
    lock.commit().await.unwrap();
    assert_eq!(
        waiting.await.unwrap(),
        Renew::Renewed,
        "it waited longer than the role's limits"
    );
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_server_without_a_free_connection_is_unavailable_until_it_has_one() {
    let (database, _) = Database::migrated().await;
    database.run(&format!(
        "CREATE ROLE {0} LOGIN PASSWORD 'a password' CONNECTION LIMIT 1; GRANT ALL ON task_leases TO {0}",
        database.name
    ));
    let (_, after) = around_the_host(&database.url);
    let url = format!(
        "postgres://{}:a%20password@{}{after}",
        database.name,
        host(&database.url)
    );
    let other = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let error = PostgresRepo::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Unavailable);
    assert!(chain(&error).contains("too many connections"), "{}", chain(&error));
    drop(other);
    // The server takes a moment to see that it is gone.
    let repo = loop {
        match PostgresRepo::connect(&url).await {
            Ok(repo) => break repo,
            Err(error) => assert_eq!(error.kind(), RepoErrorKind::Unavailable),
        }
        tokio::task::yield_now().await;
    };
    // The connection that looked first may not have ended in the server yet.
    let granted = loop {
        match repo.acquire(&claim("job")).await {
            Ok(granted) => break granted,
            Err(error) => assert_eq!(error.kind(), RepoErrorKind::Unavailable, "{}", chain(&error)),
        }
    };
    assert!(matches!(granted, Acquire::Granted(_)));
    drop(repo);
    database.run(&format!("DROP OWNED BY {0}; DROP ROLE {0}", database.name));
}

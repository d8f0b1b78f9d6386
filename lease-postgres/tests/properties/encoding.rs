//! A database without an encoding (`SQL_ASCII`) holds any bytes as text, and its server refuses to send what is no UTF-8.

use std::time::Duration;

use lease_core::{Acquire, Inspect, Repo, RepoErrorKind};
use lease_postgres::PostgresRepo;

use crate::support::{Database, chain, claim, sql};

/// A database of this encoding, dropped with it.
struct Bytes<'a> {
    beside: &'a Database,
    name: String,
    url: String,
}

impl<'a> Bytes<'a> {
    fn new(beside: &'a Database) -> Self {
        let name = format!("{}_bytes", beside.name);
        beside.run(&format!(
            "CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'"
        ));
        let url = beside.url.replace(&beside.name, &name);
        Self { beside, name, url }
    }
}

impl Drop for Bytes<'_> {
    fn drop(&mut self) {
        self.beside.run(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

/// So a holder that is no UTF-8 is an error of its own lease and of what reads all rows, and of no other lease.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_holder_that_is_no_utf8_is_an_error_of_its_lease_alone() {
    let database = Database::empty();
    let bytes = Bytes::new(&database);
    let repo = PostgresRepo::connect(&bytes.url).await.unwrap();
    repo.migrate().await.unwrap();
    let row = "INSERT INTO task_leases (name, holder, token, acquired_at, expires_at) \
        VALUES ('job', E'pod-\\xff/1', 1, now(), now() + interval '1 hour')";
    let sql = sql(&bytes.url).await;
    sql.batch_execute(row).await.unwrap();

    let job = claim("job");
    let errors = [
        repo.acquire(&job).await.unwrap_err(),
        repo.renew(&job).await.unwrap_err(),
        repo.get(&job.name).await.unwrap_err(),
        repo.list().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), RepoErrorKind::Other);
        assert!(chain(&error).contains("invalid byte sequence"), "{}", chain(&error));
    }
    let other = claim("other");
    assert!(matches!(repo.acquire(&other).await.unwrap(), Acquire::Granted(_)));
    repo.release(&other).await.unwrap();

    // Whoever is purged is not shown, only named.
    sql.batch_execute("UPDATE task_leases SET expires_at = now() - interval '1 hour'")
        .await
        .unwrap();
    assert_eq!(repo.purge(Duration::ZERO).await.unwrap(), 2);
    assert!(matches!(repo.acquire(&job).await.unwrap(), Acquire::Granted(_)));
}

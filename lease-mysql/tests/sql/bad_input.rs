//! Wrong input and servers that refuse: a typed error that says what to do, within its bound, without the password; then it
//! works.

use std::error::Error;
use std::time::Duration;

use lease_core::{Acquire, Repo, RepoError, RepoErrorKind};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::{Dialect, Mysql, Settings};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::support::{Database, chain, claim, on_both};

const SECRET: &str = "hunter2";

on_both!(
    wrong_password_user_or_database_is_denied,
    missing_grants_are_denied_and_then_it_works,
    a_table_created_late_is_found,
    too_many_connections_are_unavailable,
    no_database_is_a_config_error,
);

async fn refused(url: &str) -> RepoError {
    let error = MysqlRepo::connect(url).await.unwrap_err();
    assert!(!chain(&error).contains(SECRET), "{}", chain(&error));
    assert!(!error.may_have_executed());
    error
}

/// A server's URL with other credentials.
fn url_as(url: &str, user: &str, database: &str) -> String {
    let (_, place) = url.split_once('@').unwrap();
    let (host, _) = place.split_once('/').unwrap();
    format!("mysql://{user}:{SECRET}@{host}/{database}")
}

/// A user of its own who may do only what `grants` say, where `USER` stands for it.
fn user(database: &Database, grants: &str) -> String {
    let user = &database.name()[..32.min(database.name().len())];
    database.run(&format!("CREATE USER {user} IDENTIFIED BY '{SECRET}'"));
    if !grants.is_empty() {
        database.run(&grants.replace("USER", user));
    }
    url_as(&database.url, user, database.name())
}

fn drop_user(database: &Database) {
    database.run(&format!("DROP USER {}", database.name()));
}

#[tokio::test]
async fn a_url_that_cannot_be_used_is_a_config_error() {
    for url in [
        format!("mysql://u:{SECRET}@h:port/db"),
        format!("mysql://u:{SECRET}@h/db?ssl-ca=/no/such/file"),
    ] {
        assert_eq!(refused(&url).await.kind(), RepoErrorKind::Config);
    }
}

#[tokio::test]
async fn nobody_listening_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = refused(&format!("mysql://u:{SECRET}@{address}/db")).await;
    assert_eq!(error.kind(), RepoErrorKind::Unavailable);
    assert!(error.line().contains(&format!("{address}: ")), "{}", error.line());
}

/// A real wait: the bound itself is what is tested. It is 5 s; a machine under load gets 5 s more.
#[tokio::test]
async fn a_server_that_answers_nothing_is_unavailable_within_its_bound() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("mysql://u:{SECRET}@{}/db", silent.local_addr().unwrap());
    let error = timeout(Duration::from_secs(10), refused(&url)).await.unwrap();
    assert_eq!(error.kind(), RepoErrorKind::Unavailable);
}

async fn wrong_password_user_or_database_is_denied(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let url = user(&database, &format!("GRANT SELECT ON `{}`.* TO USER", database.name()));
    assert!(MysqlRepo::connect(&url).await.is_ok());
    database.run(&format!("ALTER USER {} IDENTIFIED BY 'another'", database.name()));
    assert_eq!(refused(&url).await.kind(), RepoErrorKind::Denied);
    let nobody = url_as(&database.url, "nobody_of_that_name", database.name());
    assert_eq!(refused(&nobody).await.kind(), RepoErrorKind::Denied);
    let nowhere = database.url.replace(database.name(), "no_such_database");
    assert_eq!(refused(&nowhere).await.kind(), RepoErrorKind::Denied);
    let shown = format!("{repo:?}");
    assert!(
        !shown.contains("mysql://") && !shown.contains(database.name()),
        "{shown}"
    );
    drop_user(&database);
}

/// 1142.
async fn missing_grants_are_denied_and_then_it_works(dialect: Dialect) {
    let (database, _) = Database::migrated(dialect).await;
    let url = user(&database, "GRANT SELECT ON task_leases TO USER");
    let repo = MysqlRepo::connect(&url).await.unwrap();
    let claim = claim("job");
    let error = repo.acquire(&claim).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Denied, "{}", chain(&error));
    assert!(!error.may_have_executed());
    assert!(chain(&error).contains("INSERT"), "{}", chain(&error));
    database.run(&format!("GRANT INSERT, UPDATE ON task_leases TO {}", database.name()));
    assert!(matches!(repo.acquire(&claim).await, Ok(Acquire::Granted(_))));
    repo.renew(&claim).await.unwrap();
    repo.release(&claim).await.unwrap();
    repo.check_schema().await.unwrap();
    repo.migrate().await.expect("it only looks when nothing is missing");

    let deleting = repo.clone().delete_on_release(true);
    let error = deleting.release(&claim).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Denied, "{}", chain(&error));

    database.run("ALTER TABLE task_leases DROP COLUMN note");
    let error = repo.migrate().await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Denied, "{}", chain(&error));
    drop_user(&database);
}

/// C24: 1146. The same repo works as soon as somebody creates the table, or when a row was deleted by hand.
async fn a_table_created_late_is_found(dialect: Dialect) {
    let database = Database::empty(dialect);
    let repo = database.repo().await;
    let claim = claim("job");
    for error in [
        repo.acquire(&claim).await.unwrap_err(),
        repo.renew(&claim).await.unwrap_err(),
        repo.release(&claim).await.unwrap_err(),
        repo.check_schema().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), RepoErrorKind::SchemaMissing, "{}", chain(&error));
        assert!(!error.may_have_executed());
        assert!(!error.kind().is_transient());
    }
    repo.migrate().await.unwrap();
    assert!(matches!(repo.acquire(&claim).await, Ok(Acquire::Granted(_))));
    database.run("DELETE FROM task_leases");
    assert!(matches!(repo.acquire(&claim).await, Ok(Acquire::Granted(_))));

    // Statements that a connection has prepared survive a table that is made anew.
    database.run("DROP TABLE task_leases");
    let error = repo.renew(&claim).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::SchemaMissing, "{}", chain(&error));
    repo.migrate().await.unwrap();
    assert!(matches!(repo.acquire(&claim).await, Ok(Acquire::Granted(_))));
    assert!(repo.renew(&claim).await.is_ok());

    let nowhere = database.repo().await.table("no_such_database.task_leases").unwrap();
    let error = nowhere.acquire(&claim).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::SchemaMissing, "{}", chain(&error));
}

/// 1040. The server keeps one connection for a superuser, so the pod is none.
async fn too_many_connections_are_unavailable(dialect: Dialect) {
    let server = Mysql::private(dialect, &Settings::default().max_connections(10)).unwrap();
    let database = Database::on(&server);
    let url = user(&database, &format!("GRANT ALL ON `{}`.* TO USER", database.name()));
    let repo = MysqlRepo::connect(&url).await.unwrap();
    repo.migrate().await.unwrap();
    let mut others = Vec::new();
    let error = loop {
        match MysqlRepo::connect(&url).await {
            Ok(other) => {
                other.acquire(&claim("fills a connection")).await.unwrap();
                others.push(other);
            }
            Err(error) => break error,
        }
        assert!(others.len() < 20, "the server takes no more than ten");
    };
    assert_eq!(error.kind(), RepoErrorKind::Unavailable, "{}", chain(&error));
    assert!(
        error.source().unwrap().to_string().contains("1040"),
        "{}",
        chain(&error)
    );
    let error = repo.acquire(&claim("job")).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Unavailable, "{}", chain(&error));
    assert!(!error.may_have_executed());
    drop(others);
    let free = async {
        while !matches!(repo.acquire(&claim("job")).await, Ok(Acquire::Granted(_))) {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), free)
        .await
        .expect("connections are free again");
}

/// 1046.
async fn no_database_is_a_config_error(dialect: Dialect) {
    let (database, _) = Database::migrated(dialect).await;
    let url = database.url.replace(database.name(), "");
    let repo = MysqlRepo::connect(&url).await.unwrap();
    let error = repo.acquire(&claim("job")).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Config, "{}", chain(&error));
    let named = repo.table(&format!("{}.task_leases", database.name())).unwrap();
    assert!(matches!(
        named.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));
}

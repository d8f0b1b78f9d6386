//! PostgreSQL.

use std::env;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use lease_testkit::servers::{Postgres, ServerError, Settings, Source};

use crate::owner::{containers_of, is_owner, kill, own, owner, takes_connections, wait_until};

fn local() -> Postgres {
    Postgres::private(&Settings::default().source(Source::Local)).unwrap()
}

fn container() -> Postgres {
    Postgres::private(&Settings::default().source(Source::Container)).unwrap()
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn each_database_is_empty_private_and_dropped_with_its_guard() {
    let server = Postgres::shared().unwrap();
    let first = server.database().unwrap();
    let second = server.database().unwrap();
    first.sql("CREATE TABLE t (i int)").unwrap();
    second.sql("CREATE TABLE t (i int)").unwrap();
    assert_eq!(first.sql("SELECT current_database()").unwrap(), [first.name()]);
    assert!(first.url().contains(first.name()));

    let name = first.name().to_owned();
    drop(first);
    let left = server
        .sql(&format!("SELECT 1 FROM pg_database WHERE datname = '{name}'"))
        .unwrap();
    assert!(left.is_empty());
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn the_shared_server_can_be_used_inside_of_a_runtime() {
    let database = Postgres::shared().unwrap().database().unwrap();
    assert_eq!(database.sql("SELECT 1").unwrap(), ["1"]);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_server_given_by_url_is_not_ours_to_stop() {
    let ours = Postgres::private(&Settings::default()).unwrap();
    let given = Postgres::at(ours.url()).unwrap();
    assert!(matches!(given.stop(), Err(ServerError::NotOurs { .. })));
    assert!(matches!(given.pause(), Err(ServerError::NotOurs { .. })));
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_local_server_does_what_tests_ask_of_it() {
    does_what_tests_ask_of_it(&local());
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_container_does_what_tests_ask_of_it() {
    does_what_tests_ask_of_it(&container());
}

fn does_what_tests_ask_of_it(server: &Postgres) {
    let database = server.database().unwrap();
    database
        .sql("CREATE TABLE t (i int); INSERT INTO t VALUES (7)")
        .unwrap();
    assert_eq!(server.sql("SHOW max_connections").unwrap(), ["300"]);
    assert_eq!(
        server.sql("SHOW shared_preload_libraries").unwrap(),
        ["pg_stat_statements"]
    );

    server.set("default_transaction_read_only", "on").unwrap();
    assert!(as_client(database.url(), "INSERT INTO t VALUES (8)").is_err());
    server.reset("default_transaction_read_only").unwrap();
    as_client(database.url(), "INSERT INTO t VALUES (8)").unwrap();

    server.pause().unwrap();
    assert!(matches!(server.sql("SELECT 1"), Err(ServerError::TimedOut { .. })));
    server.resume().unwrap();
    assert_eq!(server.sql("SELECT 1").unwrap(), ["1"]);

    server.stop().unwrap();
    assert!(server.sql("SELECT 1").is_err());
    server.start().unwrap();
    assert_eq!(database.sql("SELECT i FROM t").unwrap(), ["7", "8"]);

    database.sql("INSERT INTO t VALUES (9)").unwrap();
    server.kill().unwrap();
    assert!(server.sql("SELECT 1").is_err());
    server.start().unwrap();
    assert_eq!(database.sql("SELECT i FROM t").unwrap(), ["7", "8", "9"]);
    one_session_freezes_alone(server);
}

fn one_session_freezes_alone(server: &Postgres) {
    let database = server.database().unwrap();
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| database.sql("SELECT pg_sleep(0.5)"));
        let pid = loop {
            if let [pid] = database.backend_pids().unwrap()[..] {
                break pid;
            }
        };
        server.pause_backend(pid).unwrap();
        thread::sleep(Duration::from_millis(1_000));
        assert!(!sleeper.is_finished());
        assert_eq!(server.sql("SELECT 1").unwrap(), ["1"]);
        server.resume_backend(pid).unwrap();
        sleeper.join().unwrap().unwrap();
    });
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_local_server_can_be_given_a_certificate() {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let settings = Settings::default()
        .source(Source::Local)
        .with("ssl", "on")
        .with_file("ssl_cert_file", certificate.pem())
        .with_file("ssl_key_file", key.serialize_pem());
    // It does not start with a key that others can read, or that is not the certificate's.
    let server = Postgres::private(&settings).unwrap();
    let path = server.sql("SHOW ssl_cert_file").unwrap().remove(0);
    assert!(path.ends_with("/ssl_cert_file"), "{path}");
}

/// Runs a statement as any client does, subject to the server's defaults.
fn as_client(url: &str, text: &str) -> Result<(), tokio_postgres::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute(text).await
    })
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_dropped_server_is_gone_at_once() {
    for paused in [false, true] {
        let server = local();
        let folder = folder_of(&server);
        if paused {
            server.pause().unwrap();
        }
        drop(server);
        assert!(!Path::new(&folder).exists());
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_container_that_is_dropped_is_gone_at_once() {
    for paused in [false, true] {
        let server = container();
        let url = server.url().to_owned();
        assert!(takes_connections(&url));
        if paused {
            server.pause().unwrap();
        }
        drop(server);
        assert!(!takes_connections(&url));
    }
}

#[test]
fn a_machine_without_an_engine_is_told_what_to_do() {
    const CHILD: &str = "LEASE_TEST_WITHOUT_ENGINE";
    if env::var_os(CHILD).is_some() {
        let error = Postgres::private(&Settings::default().source(Source::Container)).unwrap_err();
        println!("\nerror={error}");
        return;
    }
    let output = Command::new(env::current_exe().unwrap())
        .args([
            "postgres::a_machine_without_an_engine_is_told_what_to_do",
            "--exact",
            "--nocapture",
        ])
        .env(CHILD, "1")
        .env("DOCKER_HOST", "unix:///nonexistent")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("error=needs PostgreSQL: cargo xtask test (looked for a Docker engine"),
        "{text}"
    );
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_wrong_login_is_an_error_at_once() {
    let server = Postgres::private(&Settings::default()).unwrap();
    let wrong = server.url().replace("//postgres:", "//nobody:");
    let error = Postgres::at(&wrong).unwrap_err();
    assert!(
        matches!(&error, ServerError::NotReady { reason, .. } if reason.contains("password")),
        "{error}"
    );
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_local_server_is_gone_after_its_owner_was_killed() {
    if is_owner() {
        own(local().url());
    }
    let (owner, url) = owner("postgres::a_local_server_is_gone_after_its_owner_was_killed");
    let server = Postgres::at(&url).unwrap();
    let folder = folder_of(&server);
    assert!(Path::new(&folder).exists());
    kill(owner);
    wait_until("the folder is gone", || !Path::new(&folder).exists());
    assert!(server.sql("SELECT 1").is_err());
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_container_is_gone_after_its_owner_was_killed() {
    if is_owner() {
        own(container().url());
    }
    let (owner, url) = owner("postgres::a_container_is_gone_after_its_owner_was_killed");
    let server = Postgres::at(&url).unwrap();
    let id = owner.id();
    assert_ne!(containers_of(id), 0);
    kill(owner);
    wait_until("the container is gone", || containers_of(id) == 0);
    assert!(server.sql("SELECT 1").is_err());
}

fn folder_of(server: &Postgres) -> String {
    let data = server.sql("SHOW data_directory").unwrap().remove(0);
    Path::new(&data).parent().unwrap().to_str().unwrap().to_owned()
}

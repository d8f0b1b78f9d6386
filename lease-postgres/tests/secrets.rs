//! No password in anything that we or the driver log, at the most talkative level, whatever happens to a connection.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::Mutex;

use lease_core::{Acquire, Claim, Inspect, Label, LeaseName, Repo};
use lease_postgres::PostgresRepo;
use lease_testkit::servers::Postgres;
use log::{LevelFilter, Log, Metadata, Record};

/// In no word that anybody else would log.
const SECRET: &str = "QX7Zhunter2";

static LOGGED: Mutex<String> = Mutex::new(String::new());

/// What the driver logs by the facade `log`, and we by `tracing`.
struct Listener;

impl Log for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &Record<'_>) {
        let line = format!("{} {}\n", record.target(), record.args());
        LOGGED.lock().unwrap().push_str(&line);
    }
    fn flush(&self) {}
}

impl Write for Listener {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn listen() {
    log::set_logger(&Listener).unwrap();
    log::set_max_level(LevelFilter::Trace);
    let lines = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    tracing::subscriber::set_global_default(lines.with_writer(|| Listener).finish()).unwrap();
}

/// The texts of an error, and how it looks when it is printed for debugging.
fn note(what: impl Debug) {
    LOGGED.lock().unwrap().push_str(&format!("{what:?}\n"));
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn nothing_that_is_logged_has_the_password() {
    let database = Postgres::shared().unwrap().database().unwrap();
    let role = format!("secret_of_{}", database.name());
    let sql = |text: &str| database.sql(text).unwrap();
    sql(&format!("CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{SECRET}'"));
    // Only now: the test's own administrator logs the statement above, by the same driver.
    listen();
    let (_, place) = database.url().rsplit_once('@').unwrap();
    let url = format!("postgres://{role}:{SECRET}@{place}");

    let repo = PostgresRepo::connect(&url).await.unwrap().notify(true);
    note(&repo);
    repo.migrate().await.unwrap();
    let holder = Label::new("pod").unwrap().new_holder();
    let claim = Claim::new(
        LeaseName::from_static("job"),
        holder,
        std::time::Duration::from_secs(30),
    );
    assert!(matches!(repo.acquire(&claim).await, Ok(Acquire::Granted(_))));
    repo.renew(&claim).await.unwrap();
    note(repo.diagnose().await.unwrap());
    note(repo.list().await.unwrap());
    // Its sessions are ended, and its password is another.
    sql(&format!("ALTER ROLE {role} PASSWORD 'another'"));
    sql(&format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"
    ));
    note(repo.renew(&claim).await.unwrap_err());
    for wrong in [
        url.clone(),
        url.replace(&role, "nobody_of_that_name"),
        url.replace(database.name(), "no_such_database"),
        format!("{url}?sslmode=verify-full"),
        format!("{url}?sslrootcert=/no/such/file&sslmode=verify-ca"),
        format!("{url}?no_such_option=1"),
        format!("postgres://{role}:{SECRET}@127.0.0.1:9/db"),
        format!("postgres://{role}:{SECRET}@127.0.0.1:port/db"),
        format!("user={role} password={SECRET} host=127.0.0.1 port=9"),
    ] {
        note(PostgresRepo::connect(&wrong).await.unwrap_err());
        if let Ok(lazy) = PostgresRepo::lazy(&wrong) {
            note(&lazy);
            note(lazy.acquire(&claim).await.unwrap_err());
        }
    }
    sql(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"));

    let logged = LOGGED.lock().unwrap();
    let lines: Vec<&str> = logged.lines().filter(|line| line.contains("QX7Z")).collect();
    assert_eq!(lines, [] as [&str; 0]);
    // It did listen: to the driver, too.
    assert!(logged.contains("tokio_postgres"), "{logged}");
}

//! No password in anything that we or the driver log, at the most talkative level, whatever happens to a connection.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, Once};

use lease_core::{Acquire, Claim, Inspect, Label, LeaseName, Repo};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::{Dialect, Mysql};
use log::{LevelFilter, Log, Metadata, Record};

mod support;
use support::on_both;

/// In no word that anybody else would log.
const SECRET: &str = "QX7Zhunter2";

static LOGGED: Mutex<String> = Mutex::new(String::new());

/// What drivers log by the facade `log`, and we by `tracing`.
struct Listener;

impl Log for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &Record<'_>) {
        let line = format!("{} {}\n", record.target(), record.args());
        logged().push_str(&line);
    }
    fn flush(&self) {}
}

impl Write for Listener {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        logged().push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logged() -> MutexGuard<'static, String> {
    LOGGED.lock().unwrap()
}

fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Listener).unwrap();
        log::set_max_level(LevelFilter::Trace);
        let lines = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
        tracing::subscriber::set_global_default(lines.with_writer(|| Listener).finish()).unwrap();
    });
}

/// How a thing looks when it is printed for debugging.
fn note(what: impl Debug) {
    logged().push_str(&format!("{what:?}\n"));
}

on_both!(nothing_that_is_logged_has_the_password);

async fn nothing_that_is_logged_has_the_password(dialect: Dialect) {
    listen();
    tracing::error!("it listens");
    let database = Mysql::shared(dialect).unwrap().database().unwrap();
    let name = database.name();
    let user = &name[..32.min(name.len())];
    let sql = |text: &str| database.sql(text).unwrap();
    sql(&format!(
        "CREATE USER {user} IDENTIFIED BY '{SECRET}'; GRANT ALL ON `{name}`.* TO {user}"
    ));
    let (_, place) = database.url().rsplit_once('@').unwrap();
    let url = format!("mysql://{user}:{SECRET}@{place}");

    let repo = MysqlRepo::connect(&url).await.unwrap();
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
    // Its password is another.
    sql(&format!("ALTER USER {user} IDENTIFIED BY 'another'"));
    for wrong in [
        url.clone(),
        url.replace(&format!("{user}:"), "nobody_of_that_name:"),
        url.replace(&format!("/{name}"), "/no_such_database"),
        format!("{url}?ssl-mode=VERIFY_IDENTITY&ssl-ca=/no/such/file"),
        format!("{url}?ssl-mode=VERIFY_IDENTITY"),
        format!("{url}?no_such_option=1"),
        format!("mysql://{user}:{SECRET}@127.0.0.1:9/db"),
        format!("mysql://{user}:{SECRET}@127.0.0.1:port/db"),
    ] {
        note(MysqlRepo::connect(&wrong).await.unwrap_err());
        if let Ok(lazy) = MysqlRepo::lazy(&wrong) {
            note(&lazy);
            note(lazy.acquire(&claim).await.unwrap_err());
        }
    }
    sql(&format!("DROP USER {user}"));

    let logged = logged();
    let lines: Vec<&str> = logged.lines().filter(|line| line.contains("QX7Z")).collect();
    assert_eq!(lines, [] as [&str; 0]);
    assert!(logged.contains("it listens"), "{logged}");
}

//! C8: contenders in several processes, all at once on one row that is absent, and then on the same row, just expired.
//!
//! It says what the server counted meanwhile: deadlocks, and waits for a row.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use futures_util::future::join_all;
use lease_core::{Acquire, Repo};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::{Dialect, Mysql, Settings};

mod support;
use support::{Database, claim, on_both};

on_both!(of_64_contenders_in_four_processes_one_wins);

const PROCESSES: usize = 4;
const CONTENDERS: usize = 16;

/// Rounds of two herds each. 200 take half a minute for each engine, and are for measurements: `LEASE_HERD_ROUNDS=200`.
const ROUNDS: usize = 25;

/// Tells a process of this test which database it is to work on.
const URL: &str = "LEASE_HERD_URL";

async fn of_64_contenders_in_four_processes_one_wins(dialect: Dialect) {
    if let Ok(url) = std::env::var(URL) {
        return contend(&url).await;
    }
    let rounds = std::env::var("LEASE_HERD_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let server = Mysql::private(dialect, &Settings::default()).unwrap();
    let database = Database::on(&server);
    database.repo().await.migrate().await.unwrap();
    let test = match dialect {
        Dialect::MariaDb => "mariadb::of_64_contenders_in_four_processes_one_wins",
        _ => "mysql::of_64_contenders_in_four_processes_one_wins",
    };
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| Contenders::start(test, &database.url)).collect();
    for process in &mut processes {
        assert_eq!(process.says(), "ready");
    }
    let begin = counted(&server);
    // On an absent row, and on an expired one.
    let mut waits = [0, 0];
    for round in 0..rounds {
        for expired in [false, true] {
            if expired {
                database.run("UPDATE task_leases SET expires_at = UTC_TIMESTAMP(6)");
            }
            let before = counted(&server);
            for process in &mut processes {
                process.hears(&format!("job-{round}"));
            }
            let said: Vec<_> = processes.iter_mut().map(Contenders::says).collect();
            let won = said.iter().filter(|said| *said == "1 won").count();
            let lost = said.iter().filter(|said| *said == "0 won").count();
            waits[usize::from(expired)] += counted(&server).1 - before.1;
            assert_eq!(
                (won, lost),
                (1, PROCESSES - 1),
                "round {round}, expired {expired}: {said:?}"
            );
        }
    }
    eprintln!(
        "{dialect:?}, {rounds} rounds: {} deadlocks; waits for a row, of {} acquires each: {} on an absent row, {} on an expired one",
        counted(&server).0 - begin.0,
        rounds * PROCESSES * CONTENDERS,
        waits[0],
        waits[1],
    );
}

/// Deadlocks, and waits for a row, since the server's start.
fn counted(server: &Mysql) -> (i64, i64) {
    let count = |what: &str| {
        // A counter that is off has no row here, and the test fails.
        let text = format!(
            "SELECT count FROM information_schema.innodb_metrics WHERE name = '{what}' AND time_enabled IS NOT NULL AND time_disabled IS NULL"
        );
        server.sql(&text).unwrap().remove(0).parse().unwrap()
    };
    (count("lock_deadlocks"), count("lock_row_lock_waits"))
}

/// A process of the test, ended when this is dropped.
struct Contenders {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Contenders {
    fn start(test: &str, url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--include-ignored", "--nocapture"])
            .env(URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn hears(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line that is meant for us; the test's own output has other ones.
    fn says(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "a process ended");
            if let Some(said) = line.trim().strip_prefix("> ") {
                return said.to_owned();
            }
        }
    }
}

impl Drop for Contenders {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The part of a process: at each name that it hears, all its contenders want that lease. It ends with its input.
async fn contend(url: &str) {
    let repo = MysqlRepo::connect(url).await.unwrap().connections(CONTENDERS).unwrap();
    // All connections are open before it begins.
    for answer in join_all((0..CONTENDERS).map(async |at| repo.renew(&claim(&format!("warm {at}"))).await)).await {
        answer.unwrap();
    }
    say("ready");
    for name in std::io::stdin().lines() {
        let name = name.unwrap();
        let tries = join_all((0..CONTENDERS).map(async |_| repo.acquire(&claim(&name)).await)).await;
        let won: Result<Vec<_>, _> = tries.into_iter().collect();
        say(&match won {
            Ok(all) => {
                let won = all.iter().filter(|one| matches!(one, Acquire::Granted(_))).count();
                format!("{won} won")
            }
            Err(error) => support::chain(&error),
        });
    }
}

fn say(what: &str) {
    // Not captured by the test, which has no end before its input has.
    std::io::stdout().write_all(format!("\n> {what}\n").as_bytes()).unwrap();
}

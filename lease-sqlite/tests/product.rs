//! Faults by product: every public future dropped at every await point, by every answer of the store; and the repo's own
//! futures, dropped at every await point and at times spread over a statement.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diesel::SqliteConnection;
use diesel::connection::SimpleConnection;
use lease_sqlite::SqliteRepo;
use lease_sqlite::lease_core::{Renew, Repo};
use lease_testkit::product::{Answer, Backend, Product, Public, Report, Rest, Time};

mod support;
use support::{Database, claim};

/// Times over which a statement is spread.
const SPREAD: &[Rest] = &[
    Rest::Woken,
    Rest::Real(Duration::from_micros(20)),
    Rest::Real(Duration::from_micros(200)),
    Rest::Real(Duration::from_micros(2_000)),
];

struct File {
    repo: Arc<SqliteRepo>,
    eyes: SqliteRepo,
    sql: Mutex<SqliteConnection>,
    database: Database,
}

impl File {
    async fn new() -> Self {
        let database = Database::migrated().await;
        Self {
            repo: Arc::new(database.repo().await),
            eyes: database.repo().await,
            sql: Mutex::new(database.sql()),
            database,
        }
    }

    fn run(&self, text: &str) {
        self.sql.lock().unwrap().batch_execute(text).unwrap();
    }
}

impl Backend for File {
    type Repo = SqliteRepo;

    fn repo(&self) -> Arc<SqliteRepo> {
        self.repo.clone()
    }

    fn eyes(&self) -> &SqliteRepo {
        &self.eyes
    }

    async fn step_clock(&self, by_us: i64) {
        self.database.step_clock(by_us);
    }

    /// The connection answers, and no transaction was left open in it.
    async fn sound(&self) -> Result<(), String> {
        match self.repo.renew(&claim("nothing")).await {
            Ok(Renew::Lost(_)) => {}
            other => return Err(format!("the repo answers {other:?}")),
        }
        self.run("BEGIN IMMEDIATE; ROLLBACK");
        Ok(())
    }
}

fn enough<E: Display>(report: Result<Report, E>, least: usize) {
    let report = report.unwrap_or_else(|what| panic!("{what}"));
    assert!(report.combinations() >= least, "{report}");
}

#[tokio::test]
async fn public_futures_leave_nothing_behind() {
    let product = Product::new(File::new().await, Time::running()).rests(&[Rest::Woken]);
    enough(product.answers(Answer::FEW).run(Public::ALL).await, 500);
}

#[tokio::test]
async fn the_repos_futures_leave_nothing_behind() {
    let product = Product::new(File::new().await, Time::running()).rests(SPREAD);
    enough(product.run_own().await, 50);
}

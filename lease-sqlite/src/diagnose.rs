//! [`diagnose`](SqliteRepo::diagnose): what a file and its place are like, before it matters.

use std::time::Duration;

use diesel::SqliteConnection;
use diesel::result::QueryResult;
use diesel::sql_types::{BigInt, Text};
use lease_core::{BootClock, Clock, ClockReading, DbTime, Finding, Operation, RepoError, RepoErrorKind};

use crate::SqliteRepo;
use crate::error::Subject;
use crate::place::Place;
use crate::repo::rows;
use crate::schema::is_writable;
use crate::sql::{now, statement};

mod mount;

/// How long one of its looks may take. Whoever keeps the file locked for longer costs leases their renewals.
const LIMIT: Duration = Duration::from_secs(3);

statement! {
    /// SQLite's version, journal mode, and what a commit waits for.
    FileFacts -> (Text, Text, BigInt):
    "SELECT sqlite_version(), (SELECT journal_mode FROM pragma_journal_mode), (SELECT synchronous FROM pragma_synchronous)",
}

statement! {
    /// SQLite's clock.
    FileClock -> (BigInt):
    "SELECT ", now!(),
}

statement! {
    /// A line for each damage of the table or its index, or one that says `ok`.
    IntegrityCheck -> (Text):
    "SELECT integrity_check FROM pragma_integrity_check('task_leases')",
}

impl SqliteRepo {
    /// Looks at all that leases hang on, for an operator: the file, its file system, rights, clock, table and health. It changes
    /// nothing.
    ///
    /// It takes about a second, in which SQLite's clock is compared with this machine's monotonic one. Of a file with other tables
    /// only that of the leases is looked through.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect). Whatever else is wrong is a [`Finding`].
    ///
    /// # Cancelling
    /// It changes nothing.
    pub async fn diagnose(&self) -> Result<Vec<Finding>, RepoError> {
        let facts: Vec<(String, String, i64)> = self.ask(|connection| rows(connection, FileFacts, &[])).await?;
        let (version, journal, synchronous) = facts.into_iter().next().unwrap_or_default();
        let mut findings = vec![
            Finding::ok("connection", self.place.to_string()),
            Finding::ok("version", format!("SQLite {version}, built in")),
            self.rights().await,
        ];
        if let Place::File(path) = &self.place {
            findings.extend([mount::finding(path), durability(&journal, synchronous)]);
        } else {
            let advice = "name a file where leases are to outlive this process, or to be seen by another";
            findings.push(Finding::warning("file_system", "memory of this process", advice));
        }
        findings.extend(ClockReading::findings(&self.clock().await?));
        findings.extend(match self.check_schema().await {
            Ok(()) => [
                Finding::ok("schema", "the table is as it must be"),
                self.integrity().await,
            ]
            .to_vec(),
            Err(error) => vec![Finding::failure("schema", &error)],
        });
        Ok(findings)
    }

    async fn rights(&self) -> Finding {
        const CHECK: &str = "privileges";
        match self.ask(is_writable).await {
            Ok(()) => Finding::ok(CHECK, "the file and its folder may be written to"),
            Err(error) => Finding::failure(CHECK, &error),
        }
    }

    async fn clock(&self) -> Result<Vec<ClockReading>, RepoError> {
        let mut readings = Vec::new();
        for _ in 0..ClockReading::COUNT {
            let asked = BootClock.now();
            let read: Vec<(i64,)> = self.ask(|connection| rows(connection, FileClock, &[])).await?;
            let micros = read.first().map_or(0, |(micros,)| *micros);
            readings.push(ClockReading::answered(asked, DbTime::from_micros(micros)));
            BootClock.sleep_until(asked + ClockReading::EVERY).await;
        }
        Ok(readings)
    }

    async fn integrity(&self) -> Finding {
        const CHECK: &str = "integrity";
        let checked: Result<Vec<(String,)>, _> = self.ask(|connection| rows(connection, IntegrityCheck, &[])).await;
        let damage: Vec<String> = match checked {
            Err(error) => return Finding::failure(CHECK, &error),
            Ok(lines) => lines
                .into_iter()
                .map(|(line,)| line)
                .filter(|line| line != "ok")
                .collect(),
        };
        if damage.is_empty() {
            return Finding::ok(CHECK, "the table and its index agree (integrity_check)");
        }
        let advice = "take a copy back that is whole, or recover it with SQLite's own tools; tokens of a copy are older than those \
                      that were handed out";
        // It is the file that somebody has to change.
        Finding::error(CHECK, RepoErrorKind::SchemaMismatch, damage.join("; "), advice)
    }

    async fn ask<T: Send + 'static>(
        &self,
        look: impl FnMut(&mut SqliteConnection) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, RepoError> {
        let subject = Subject::new(Operation::Inspect("diagnose"));
        self.store.run(subject, LIMIT, look).await
    }
}

/// `synchronous` as a number: 2 is FULL.
fn durability(journal: &str, synchronous: i64) -> Finding {
    const CHECK: &str = "durability";
    let found = format!("journal mode {journal}, synchronous = {synchronous}");
    if journal == "wal" && synchronous >= 2 {
        return Finding::ok(CHECK, format!("{found}: what was granted is on the disk"));
    }
    let advice = "leave both as they are set when the file is opened: a crash may forget a grant";
    Finding::warning(CHECK, found, advice)
}

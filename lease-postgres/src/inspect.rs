//! [`Inspect`] for [`PostgresRepo`]: each method on a connection of its own.

use std::time::Duration;

use diesel::pg::data_types::PgTimestamp;
use lease_core::{
    Evict, Inspect, Label, LeaseName, LeaseRow, Note, Operation, PURGE_MARGIN, Release, RepoError, RowTimes,
};
use lease_diesel::{Failure, Subject, Task};

use crate::PostgresRepo;
use crate::engine::{Postgres, Session};
use crate::sql::{self, Value::Int, Value::Text};
use crate::value::{Lossy, db_time, left, span};

/// How long a method may take, opening its connection included.
const LIMIT: Duration = Duration::from_secs(10);
/// How long a purge may take, which runs a statement per row.
const PURGE_LIMIT: Duration = Duration::from_secs(600);

impl Inspect for PostgresRepo {
    async fn list(&self) -> Result<Vec<LeaseRow>, RepoError> {
        self.source.run_alone(&self.target, Listing, LIMIT).await
    }

    async fn get(&self, name: &LeaseName) -> Result<Option<LeaseRow>, RepoError> {
        self.source.run_alone(&self.target, Getting(name.clone()), LIMIT).await
    }

    async fn evict(&self, name: &LeaseName, by: &Label, reason: &Note) -> Result<Evict, RepoError> {
        self.source
            .run_alone(&self.target, Evicting::new(name, by, reason, false), LIMIT)
            .await
    }

    async fn evict_now(&self, name: &LeaseName, by: &Label, reason: &Note) -> Result<Evict, RepoError> {
        self.source
            .run_alone(&self.target, Evicting::new(name, by, reason, true), LIMIT)
            .await
    }

    async fn pause(&self, name: &LeaseName, duration: Duration, by: &Label, reason: &Note) -> Result<(), RepoError> {
        let task = Pausing {
            name: name.clone(),
            duration,
            holder: format!("pause/{by}"),
            reason: reason.clone(),
        };
        self.source.run_alone(&self.target, task, LIMIT).await
    }

    async fn resume(&self, name: &LeaseName) -> Result<Release, RepoError> {
        self.source.run_alone(&self.target, Resuming(name.clone()), LIMIT).await
    }

    async fn purge(&self, older_than: Duration) -> Result<u64, RepoError> {
        let task = Purging { older_than, deleted: 0 };
        self.source.run_alone(&self.target, task, PURGE_LIMIT).await
    }
}

struct Listing;

impl Task<Postgres> for Listing {
    type Answer = Vec<LeaseRow>;

    fn subject(&self) -> Subject {
        Subject::new(Operation::Inspect("list"))
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Vec<LeaseRow>, Failure> {
        let rows: Vec<Row> = session.rows(sql::List, &[]).await?;
        Ok(rows.into_iter().map(shown).collect())
    }
}

struct Getting(LeaseName);

impl Task<Postgres> for Getting {
    type Answer = Option<LeaseRow>;

    fn subject(&self) -> Subject {
        Subject::of(Operation::Inspect("get"), &self.0)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Option<LeaseRow>, Failure> {
        let values = [Text(self.0.as_str())];
        let row: Option<Row> = sql::first(session.rows(sql::Get, &values).await?);
        Ok(row.map(shown))
    }
}

struct Evicting {
    name: LeaseName,
    holder: String,
    reason: Note,
    at_once: bool,
}

impl Evicting {
    fn new(name: &LeaseName, by: &Label, reason: &Note, at_once: bool) -> Self {
        Self {
            name: name.clone(),
            holder: format!("evict/{by}"),
            reason: reason.clone(),
            at_once,
        }
    }
}

impl Task<Postgres> for Evicting {
    type Answer = Evict;

    fn subject(&self) -> Subject {
        let method = if self.at_once { "evict_now" } else { "evict" };
        Subject::of(Operation::Inspect(method), &self.name)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Evict, Failure> {
        let values = [Text(self.name.as_str()), Text(&self.holder), Text(self.reason.as_str())];
        let rows: Vec<(PgTimestamp, PgTimestamp)> = if self.at_once {
            let rows: Vec<(PgTimestamp, PgTimestamp, String)> = session.rows(sql::EvictNow, &values).await?;
            rows.into_iter().map(|(expires_at, now, _)| (expires_at, now)).collect()
        } else {
            session.rows(sql::Evict, &values).await?
        };
        Ok(
            sql::first(rows).map_or(Evict::NotHeld, |(expires_at, now)| Evict::Evicted {
                free_in: left(expires_at, now).unwrap_or_default(),
            }),
        )
    }
}

struct Pausing {
    name: LeaseName,
    duration: Duration,
    holder: String,
    reason: Note,
}

impl Task<Postgres> for Pausing {
    type Answer = ();

    fn subject(&self) -> Subject {
        Subject::of(Operation::Inspect("pause"), &self.name)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<(), Failure> {
        let values = [
            Text(self.name.as_str()),
            Text(&self.holder),
            Int(span(self.duration)),
            Text(self.reason.as_str()),
        ];
        session.execute(sql::Pause, &values).await?;
        Ok(())
    }
}

struct Resuming(LeaseName);

impl Task<Postgres> for Resuming {
    type Answer = Release;

    fn subject(&self) -> Subject {
        Subject::of(Operation::Inspect("resume"), &self.0)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Release, Failure> {
        let values = [Text(self.0.as_str())];
        let resumed = session.execute(sql::Resume, &values).await?;
        Ok(if resumed > 0 {
            Release::Released
        } else {
            Release::NotHeld
        })
    }
}

struct Purging {
    older_than: Duration,
    /// Kept over tries: what was deleted before a conflict counts.
    deleted: u64,
}

impl Task<Postgres> for Purging {
    type Answer = u64;

    fn subject(&self) -> Subject {
        Subject::new(Operation::Inspect("purge")).deleting(true)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<u64, Failure> {
        let age = Int(span(self.older_than.max(PURGE_MARGIN)));
        let names: Vec<(String,)> = session.rows(sql::Purgeable, &[age]).await?;
        for (name,) in names {
            let values = [Text(&name), age];
            self.deleted += session.execute(sql::Purge, &values).await? as u64;
        }
        Ok(self.deleted)
    }
}

type Row = (
    Lossy,
    Lossy,
    i64,
    PgTimestamp,
    PgTimestamp,
    Option<PgTimestamp>,
    Option<Lossy>,
    PgTimestamp,
);

fn shown((name, holder, token, acquired_at, expires_at, released_at, note, now): Row) -> LeaseRow {
    let times = RowTimes {
        acquired_at: db_time(acquired_at),
        expires_at: db_time(expires_at),
        read_at: db_time(now),
    };
    let mut row = LeaseRow::new(name.0, holder.0, token, times);
    row.released_at = released_at.map(db_time);
    row.note = note.map(|note| note.0);
    row
}

//! [`Inspect`] for [`MysqlRepo`]: each method on a connection of its own.

use std::time::Duration;

use lease_core::{
    DbTime, Evict, Inspect, Label, LeaseName, LeaseRow, Note, Operation, PURGE_MARGIN, Release, RepoError, RowTimes,
};
use lease_diesel::{Failure, Subject, Task, Verdict};

use crate::MysqlRepo;
use crate::engine::{Mysql, Session};
use crate::error::explain;
use crate::sql::{self, Value::Int, Value::Text};
use crate::value::{lossy, span};

/// How long a method may take, opening its connection included.
const LIMIT: Duration = Duration::from_secs(10);
/// How long a purge may take, which runs a statement per row.
const PURGE_LIMIT: Duration = Duration::from_secs(600);

impl Inspect for MysqlRepo {
    async fn list(&self) -> Result<Vec<LeaseRow>, RepoError> {
        self.source.run_alone(&self.target, Listing, LIMIT).await
    }

    async fn get(&self, name: &LeaseName) -> Result<Option<LeaseRow>, RepoError> {
        self.source.run_alone(&self.target, Getting(name.clone()), LIMIT).await
    }

    async fn evict(&self, name: &LeaseName, by: &Label, reason: &Note) -> Result<Evict, RepoError> {
        let task = Evicting::new(name, by, reason, false);
        self.source.run_alone(&self.target, task, LIMIT).await
    }

    async fn evict_now(&self, name: &LeaseName, by: &Label, reason: &Note) -> Result<Evict, RepoError> {
        let task = Evicting::new(name, by, reason, true);
        self.source.run_alone(&self.target, task, LIMIT).await
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

impl Task<Mysql> for Listing {
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

impl Task<Mysql> for Getting {
    type Answer = Option<LeaseRow>;

    fn subject(&self) -> Subject {
        Subject::of(Operation::Inspect("get"), &self.0)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Option<LeaseRow>, Failure> {
        get(session, &self.0).await
    }
}

async fn get(session: &mut Session<'_>, name: &LeaseName) -> Result<Option<LeaseRow>, Failure> {
    let row: Option<Row> = sql::first(session.rows(sql::Get, &[Text(name.as_str())]).await?);
    Ok(row.map(shown))
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

impl Task<Mysql> for Evicting {
    type Answer = Evict;

    fn subject(&self) -> Subject {
        let method = if self.at_once { "evict_now" } else { "evict" };
        Subject::of(Operation::Inspect(method), &self.name)
    }

    /// Nobody moves the expiry of an evicted row but by a pause, so it can be read afterwards.
    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Evict, Failure> {
        let values = [Text(self.name.as_str()), Text(&self.holder), Text(self.reason.as_str())];
        if self.at_once {
            return Ok(match session.execute(sql::EvictNow, &values).await? {
                0 => Evict::NotHeld,
                _ => Evict::Evicted {
                    free_in: Duration::ZERO,
                },
            });
        }
        if session.execute(sql::Evict, &values).await? == 0 {
            return Ok(Evict::NotHeld);
        }
        let row = get(session, &self.name).await?;
        let free_in = row.and_then(|row| row.expires_in()).unwrap_or_default();
        Ok(Evict::Evicted { free_in })
    }
}

struct Pausing {
    name: LeaseName,
    duration: Duration,
    holder: String,
    reason: Note,
}

impl Task<Mysql> for Pausing {
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

impl Task<Mysql> for Resuming {
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
    /// Kept over tries: what was deleted before a failure counts.
    deleted: u64,
}

impl Task<Mysql> for Purging {
    type Answer = u64;

    fn subject(&self) -> Subject {
        Subject::new(Operation::Inspect("purge"))
    }

    /// A row that others had locked the whole time, such as an open fence, stays for the next purge.
    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<u64, Failure> {
        let age = Int(span(self.older_than.max(PURGE_MARGIN)));
        let names: Vec<(Vec<u8>,)> = session.rows(sql::Purgeable, &[age]).await?;
        for (name,) in names {
            let name = lossy(&name);
            match session.execute(sql::Purge, &[Text(&name), age]).await {
                Ok(count) => self.deleted += count as u64,
                // It is explained here and once: the server says the number of an error only to the next statement.
                Err(error) => match explain(session, &self.subject(), error).await {
                    Verdict::Conflict(_) => {}
                    Verdict::Unexplained(error) | Verdict::Gone(error) | Verdict::Final(error) => {
                        return Err(error.into());
                    }
                },
            }
        }
        Ok(self.deleted)
    }
}

type Row = (Vec<u8>, Vec<u8>, i64, i64, i64, Option<i64>, Option<Vec<u8>>, i64);

fn shown((name, holder, token, acquired_at, expires_at, released_at, note, now): Row) -> LeaseRow {
    let times = RowTimes {
        acquired_at: DbTime::from_micros(acquired_at),
        expires_at: DbTime::from_micros(expires_at),
        read_at: DbTime::from_micros(now),
    };
    let mut row = LeaseRow::new(lossy(&name), lossy(&holder), token, times);
    row.released_at = released_at.map(DbTime::from_micros);
    row.note = note.map(|note| lossy(&note));
    row
}

//! [`Inspect`] for [`SqliteRepo`].

use std::time::Duration;

use diesel::SqliteConnection;
use diesel::result::QueryResult;
use lease_core::{
    DbTime, Evict, Inspect, Label, LeaseName, LeaseRow, Note, Operation, PURGE_MARGIN, Release, RepoError, RowTimes,
};

use crate::SqliteRepo;
use crate::error::Subject;
use crate::repo::{execute, rows};
use crate::sql::{self, Value};
use crate::value::{Lossy, left, span};

/// How long a method may take.
const LIMIT: Duration = Duration::from_secs(10);

impl Inspect for SqliteRepo {
    async fn list(&self) -> Result<Vec<LeaseRow>, RepoError> {
        self.look("list", None, |connection| Ok(shown(rows(connection, sql::List, &[])?)))
            .await
    }

    async fn get(&self, name: &LeaseName) -> Result<Option<LeaseRow>, RepoError> {
        let values = [text(name.as_str())];
        self.look("get", Some(name), move |connection| {
            Ok(shown(rows(connection, sql::Get, &values)?).pop())
        })
        .await
    }

    async fn evict(&self, name: &LeaseName, by: &Label, reason: &Note) -> Result<Evict, RepoError> {
        let values = evicting(name, by, reason);
        self.look("evict", Some(name), move |connection| {
            Ok(evicted(rows(connection, sql::Evict, &values)?))
        })
        .await
    }

    async fn evict_now(&self, name: &LeaseName, by: &Label, reason: &Note) -> Result<Evict, RepoError> {
        let values = evicting(name, by, reason);
        self.look("evict_now", Some(name), move |connection| {
            Ok(evicted(rows(connection, sql::EvictNow, &values)?))
        })
        .await
    }

    async fn pause(&self, name: &LeaseName, duration: Duration, by: &Label, reason: &Note) -> Result<(), RepoError> {
        let values = [
            text(name.as_str()),
            text(&format!("pause/{by}")),
            Value::Int(span(duration)),
            text(reason.as_str()),
        ];
        self.look("pause", Some(name), move |connection| {
            execute(connection, sql::Pause, &values).map(drop)
        })
        .await
    }

    async fn resume(&self, name: &LeaseName) -> Result<Release, RepoError> {
        let values = [text(name.as_str())];
        let resumed = self
            .look("resume", Some(name), move |connection| {
                execute(connection, sql::Resume, &values)
            })
            .await?;
        Ok(if resumed > 0 {
            Release::Released
        } else {
            Release::NotHeld
        })
    }

    /// One statement, since a file has one writer at a time.
    async fn purge(&self, older_than: Duration) -> Result<u64, RepoError> {
        let values = [Value::Int(span(older_than.max(PURGE_MARGIN)))];
        let deleted = self
            .look("purge", None, move |connection| {
                execute(connection, sql::Purge, &values)
            })
            .await?;
        Ok(deleted as u64)
    }
}

impl SqliteRepo {
    async fn look<T: Send + 'static>(
        &self,
        method: &'static str,
        name: Option<&LeaseName>,
        work: impl FnMut(&mut SqliteConnection) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, RepoError> {
        let operation = Operation::Inspect(method);
        let subject = name.map_or_else(|| Subject::new(operation), |name| Subject::of(operation, name));
        self.store.run(subject, LIMIT, work).await
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn evicting(name: &LeaseName, by: &Label, reason: &Note) -> [Value; 3] {
    [text(name.as_str()), text(&format!("evict/{by}")), text(reason.as_str())]
}

fn evicted(rows: Vec<(i64, i64)>) -> Evict {
    rows.into_iter()
        .next()
        .map_or(Evict::NotHeld, |(expires_at, now)| Evict::Evicted {
            free_in: left(expires_at, now).unwrap_or_default(),
        })
}

type Row = (Lossy, Lossy, i64, i64, i64, Option<i64>, Option<Lossy>, i64);

fn shown(rows: Vec<Row>) -> Vec<LeaseRow> {
    let shown = |(name, holder, token, acquired_at, expires_at, released_at, note, now): Row| {
        let times = RowTimes {
            acquired_at: DbTime::from_micros(acquired_at),
            expires_at: DbTime::from_micros(expires_at),
            read_at: DbTime::from_micros(now),
        };
        let mut row = LeaseRow::new(name.0, holder.0, token, times);
        row.released_at = released_at.map(DbTime::from_micros);
        row.note = note.map(|note| note.0);
        row
    };
    rows.into_iter().map(shown).collect()
}

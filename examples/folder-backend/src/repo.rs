//! [`FolderRepo`]: the backend.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lease_core::{
    Acquire, BootClock, Claim, Clock, DbTime, Evict, Inspect, Label, LeaseName, LeaseRow, Moment, Note, Operation,
    Release, Renew, Repo, RepoError, RepoErrorKind, Row, RowTimes, Rows, microseconds,
};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::folder::{Failure, Folder};

/// How long an operation may take that comes with no limit of its own.
const LIMIT: Duration = Duration::from_secs(5);

/// Leases in a folder, for the processes of one machine. Clones share nothing but the path.
///
/// The folder is on a local file system that keeps `flock(2)` and renames files at once, as Linux's own do.
#[derive(Debug, Clone)]
pub struct FolderRepo {
    folder: Arc<Folder>,
}

impl FolderRepo {
    /// A repo for a folder that is there.
    ///
    /// # Errors
    /// `Config` if it is not there or is no folder; `Denied` if it may not be read; `Other` where it can't be locked, as on a
    /// network's file system.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, RepoError> {
        let path = path.as_ref().to_owned();
        let repo = Self {
            folder: Arc::new(Folder { path }),
        };
        repo.run(Operation::Connect, None, LIMIT, |folder, deadline| {
            folder.lock(deadline).map(drop)
        })
        .await?;
        Ok(repo)
    }

    /// Does what may block, within `limit`.
    async fn run<T: Send + 'static>(
        &self,
        operation: Operation,
        lease: Option<&LeaseName>,
        limit: Duration,
        work: impl FnOnce(&Folder, Moment) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, RepoError> {
        let (folder, deadline) = (Arc::clone(&self.folder), BootClock.now() + limit);
        let answer = timeout(limit, spawn_blocking(move || work(&folder, deadline))).await;
        let about = |kind| {
            let error = RepoError::new(kind, operation);
            match lease {
                Some(name) => error.with_lease(name),
                None => error,
            }
        };
        match answer {
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(failure))) => {
                let error = about(failure.kind).with_source(failure.cause);
                Err(if failure.may_have_changed {
                    error
                } else {
                    error.never_executed()
                })
            }
            Ok(Err(ended)) => Err(about(RepoErrorKind::Unavailable).with_source(ended)),
            Err(elapsed) => Err(about(RepoErrorKind::Timeout).with_source(elapsed)),
        }
    }

    /// Lets the laws decide on one row, and writes what they make of it.
    async fn change<T: Send + 'static>(
        &self,
        operation: Operation,
        name: &LeaseName,
        limit: Duration,
        law: impl Fn(&mut Rows, i64) -> T + Send + 'static,
    ) -> Result<T, RepoError> {
        let own = name.clone();
        let work = move |folder: &Folder, deadline: Moment| {
            let decide = |before: &Option<Row>| {
                let mut rows = Rows::default();
                if let Some(row) = before {
                    rows.insert(&own, row.clone());
                }
                let answer = law(&mut rows, now_us());
                (answer, rows.rows().get(own.as_str()).cloned())
            };
            let before = folder.read(&own)?;
            let (answer, after) = decide(&before);
            if after == before {
                return Ok(answer);
            }
            let locked = folder.lock(deadline)?;
            let before = folder.read(&own)?;
            let (answer, after) = decide(&before);
            if after != before {
                locked.write(&own, after.as_ref())?;
            }
            Ok(answer)
        };
        self.run(operation, Some(name), limit, work).await
    }
}

impl Repo for FolderRepo {
    async fn acquire(&self, claim: &Claim) -> Result<Acquire, RepoError> {
        let own = claim.clone();
        let law = move |rows: &mut Rows, now| rows.acquire(&own, now);
        self.change(Operation::Acquire, &claim.name, claim.limit, law).await
    }

    async fn renew(&self, claim: &Claim) -> Result<Renew, RepoError> {
        let own = claim.clone();
        let law = move |rows: &mut Rows, now| rows.renew(&own, now);
        self.change(Operation::Renew, &claim.name, claim.limit, law).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        let own = claim.clone();
        let law = move |rows: &mut Rows, now| rows.release(&own, now);
        self.change(Operation::Release, &claim.name, claim.limit, law).await
    }
}

/// The store's clock: the machine's, which all its processes share.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the store's clock, not a client's: one for all who use the folder"
)]
fn now_us() -> i64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_1970.map_or(0, microseconds)
}

impl Inspect for FolderRepo {
    async fn list(&self) -> Result<Vec<LeaseRow>, RepoError> {
        let work = |folder: &Folder, _| folder.list();
        let rows = self.run(Operation::Inspect("list"), None, LIMIT, work).await?;
        Ok(rows.into_iter().map(|(name, row)| shown(&name, row)).collect())
    }

    async fn get(&self, name: &LeaseName) -> Result<Option<LeaseRow>, RepoError> {
        let own = name.clone();
        let work = move |folder: &Folder, _| folder.read(&own);
        let row = self.run(Operation::Inspect("get"), Some(name), LIMIT, work).await?;
        Ok(row.map(|row| shown(name, row)))
    }

    async fn evict(&self, name: &LeaseName, by: &Label, reason: &Note) -> Result<Evict, RepoError> {
        let own = (name.clone(), by.clone(), reason.clone());
        let law = move |rows: &mut Rows, now| rows.evict(&own.0, &own.1, &own.2, now, false);
        self.change(Operation::Inspect("evict"), name, LIMIT, law).await
    }

    async fn evict_now(&self, name: &LeaseName, by: &Label, reason: &Note) -> Result<Evict, RepoError> {
        let own = (name.clone(), by.clone(), reason.clone());
        let law = move |rows: &mut Rows, now| rows.evict(&own.0, &own.1, &own.2, now, true);
        self.change(Operation::Inspect("evict_now"), name, LIMIT, law).await
    }

    async fn pause(&self, name: &LeaseName, duration: Duration, by: &Label, reason: &Note) -> Result<(), RepoError> {
        let own = (name.clone(), by.clone(), reason.clone());
        let law = move |rows: &mut Rows, now| rows.pause(&own.0, microseconds(duration), &own.1, &own.2, now);
        self.change(Operation::Inspect("pause"), name, LIMIT, law).await
    }

    async fn resume(&self, name: &LeaseName) -> Result<Release, RepoError> {
        let own = name.clone();
        let law = move |rows: &mut Rows, now| rows.resume(&own, now);
        self.change(Operation::Inspect("resume"), name, LIMIT, law).await
    }

    async fn purge(&self, older_than: Duration) -> Result<u64, RepoError> {
        let operation = Operation::Inspect("purge");
        let rows = self.run(operation, None, LIMIT, |folder, _| folder.list()).await?;
        let mut purged = 0;
        for (name, _) in rows {
            let law = move |rows: &mut Rows, now| rows.purge(microseconds(older_than), now);
            purged += self.change(operation, &name, LIMIT, law).await?;
        }
        Ok(purged)
    }
}

fn shown(name: &LeaseName, row: Row) -> LeaseRow {
    let times = RowTimes {
        acquired_at: DbTime::from_micros(row.acquired_at),
        expires_at: DbTime::from_micros(row.expires_at),
        read_at: DbTime::from_micros(now_us()),
    };
    let mut shown = LeaseRow::new(name.to_string(), row.holder, row.token, times);
    shown.released_at = row.released_at.map(DbTime::from_micros);
    shown.note = row.note;
    shown
}

//! [`SqliteRepo`]: the backend.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use diesel::deserialize::FromSqlRow;
use diesel::result::QueryResult;
use diesel::sqlite::Sqlite;
use diesel::{RunQueryDsl, SqliteConnection};
use lease_core::{Acquire, Claim, Incumbent, Loss, Operation, Release, Renew, Repo, RepoError, RepoErrorKind, Token};

use crate::error::Subject;
use crate::place::Place;
use crate::sql::{self, Bound, Value};
use crate::store::Store;
use crate::value::{Lossy, left, span};

/// How long opening the file for the first time may take, other processes' locks included.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Leases in the table `task_leases` of an SQLite file, for the processes of one machine.
///
/// A thread of its own has the connection, and waits there for the disk and for other processes. Clones share it.
#[derive(Clone)]
pub struct SqliteRepo {
    pub(crate) store: Store,
    pub(crate) place: Place,
}

impl SqliteRepo {
    /// A repo for the file at `url`: `sqlite:` and a path, a path alone, or `sqlite::memory:` for leases of this repo and its
    /// clones alone.
    ///
    /// The file is made if there is none, its folder is not. It is switched to write-ahead logging, which stays in it.
    /// [`migrate`](Self::migrate) makes the table.
    ///
    /// # Errors
    /// `Config` for a folder that is missing or a file that is no database, `Denied` where the file may not be opened,
    /// `ReadOnly` where it can't be written to, `Conflict` when other processes had it locked for five seconds. Each
    /// names the file.
    ///
    /// # Cancelling
    /// Dropping the future ends the thread once it has opened the file.
    pub async fn connect(url: &str) -> Result<Self, RepoError> {
        Self::at(Place::parse(url)).await
    }

    /// As [`connect`](Self::connect), for a path that is no text of ours.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, RepoError> {
        Self::at(Place::file(path.as_ref())).await
    }

    async fn at(place: Result<Place, String>) -> Result<Self, RepoError> {
        let subject = Subject::new(Operation::Connect);
        let config = |text: String| subject.error(RepoErrorKind::Config).with_source(text).never_executed();
        let place = place.map_err(config)?;
        let store = Store::start(place.clone()).map_err(|error| config(error.to_string()))?;
        let repo = Self { store, place };
        repo.store
            .run(subject.clone(), CONNECT_LIMIT, crate::schema::is_writable)
            .await?;
        Ok(repo)
    }
}

impl fmt::Debug for SqliteRepo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteRepo").field("file", &self.place).finish()
    }
}

/// All rows of a statement, read to their end: a commit that fails is reported after them.
pub(crate) fn rows<S: sql::Statement, T>(
    connection: &mut SqliteConnection,
    statement: S,
    values: &[Value],
) -> QueryResult<Vec<T>>
where
    T: FromSqlRow<S::Row, Sqlite> + 'static,
    for<'a> Bound<'a, S>: diesel::query_dsl::LoadQuery<'a, SqliteConnection, T>,
{
    Bound::new(statement, values).load(connection)
}

/// How many rows a statement changed.
pub(crate) fn execute<S: sql::Statement>(
    connection: &mut SqliteConnection,
    statement: S,
    values: &[Value],
) -> QueryResult<usize> {
    Bound::new(statement, values).execute(connection)
}

/// Name, holder, and one duration.
fn values(claim: &Claim, duration: Duration) -> [Value; 3] {
    [
        Value::Text(claim.name.as_str().to_owned()),
        Value::Text(claim.holder.as_str().to_owned()),
        Value::Int(span(duration)),
    ]
}

/// What stands in a row.
struct Seen {
    holder: String,
    expires_in: Option<Duration>,
    released: bool,
}

fn peek(connection: &mut SqliteConnection, values: &[Value]) -> QueryResult<Option<Seen>> {
    let found: Vec<(Lossy, i64, Option<i64>, i64)> = rows(connection, sql::Peek, &values[..1])?;
    Ok(found
        .into_iter()
        .next()
        .map(|(holder, expires_at, released_at, now)| Seen {
            holder: holder.0,
            expires_in: left(expires_at, now),
            released: released_at.is_some(),
        }))
}

fn renew(connection: &mut SqliteConnection, claim: &Claim) -> QueryResult<Renew> {
    let values = values(claim, claim.ttl);
    loop {
        if execute(connection, sql::Renew, &values)? > 0 {
            return Ok(Renew::Renewed);
        }
        let Some(seen) = peek(connection, &values)? else {
            return Ok(Renew::Lost(Loss::Gone));
        };
        // Ours and live after all: something moved in between.
        if seen.holder != claim.holder.as_str() || seen.released || seen.expires_in.is_none() {
            let loss = Loss::of_row(&seen.holder, &claim.holder, seen.released, seen.expires_in);
            return Ok(Renew::Lost(loss));
        }
    }
}

impl Repo for SqliteRepo {
    /// Looks first, so that whoever does not get the lease only reads; then one statement decides.
    async fn acquire(&self, claim: &Claim) -> Result<Acquire, RepoError> {
        let subject = Subject::of(Operation::Acquire, &claim.name);
        let (values, holder) = (values(claim, claim.ttl), claim.holder.clone());
        let token = self
            .store
            .run(subject.clone(), claim.limit, move |connection| {
                let busy =
                    |seen: Option<Seen>| seen.and_then(|seen| Some(Incumbent::new(seen.holder, seen.expires_in?)));
                let seen = peek(connection, &values)?;
                let ours = seen
                    .as_ref()
                    .is_some_and(|seen| seen.holder == holder.as_str() && !seen.released);
                if !ours && let Some(incumbent) = busy(seen) {
                    return Ok(Err(Some(incumbent)));
                }
                let granted: Vec<(i64,)> = rows(connection, sql::Acquire, &values)?;
                match granted.into_iter().next() {
                    Some((token,)) => Ok(Ok(token)),
                    None => Ok(Err(busy(peek(connection, &values)?))),
                }
            })
            .await?;
        match token.map(Token::new) {
            Ok(Ok(token)) => Ok(Acquire::Granted(token)),
            Ok(Err(error)) => Err(subject.error(RepoErrorKind::Other).with_source(error)),
            Err(incumbent) => Ok(Acquire::Busy(incumbent)),
        }
    }

    async fn renew(&self, claim: &Claim) -> Result<Renew, RepoError> {
        let subject = Subject::of(Operation::Renew, &claim.name);
        let own = claim.clone();
        let renewing = move |connection: &mut SqliteConnection| renew(connection, &own);
        self.store.run(subject, claim.limit, renewing).await
    }

    fn batch_size(&self) -> usize {
        1_000
    }

    /// In one transaction: each statement takes microseconds, and what costs is the way to the disk at the end.
    async fn renew_all(&self, claims: &[Claim]) -> Vec<Result<Renew, RepoError>> {
        let Some(Claim { limit, .. }) = claims.first() else {
            return Vec::new();
        };
        let own = claims.to_vec();
        let renewing = move |connection: &mut SqliteConnection| {
            connection.immediate_transaction(|connection| own.iter().map(|claim| renew(connection, claim)).collect())
        };
        let answers: Result<Vec<Renew>, RepoError> =
            self.store.run(Subject::new(Operation::Renew), *limit, renewing).await;
        match answers {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            Err(error) => {
                let each = claims.iter().map(|claim| Err(error.clone().with_lease(&claim.name)));
                each.collect()
            }
        }
    }

    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        let subject = Subject::of(Operation::Release, &claim.name);
        let values = values(claim, claim.at_least_for);
        let releasing = move |connection: &mut SqliteConnection| execute(connection, sql::Release, &values);
        let released = self.store.run(subject, claim.limit, releasing).await?;
        Ok(if released > 0 {
            Release::Released
        } else {
            Release::NotHeld
        })
    }
}

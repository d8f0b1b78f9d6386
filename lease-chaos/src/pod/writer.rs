//! The writes of a pod: each in a transaction behind the fence, to the database that has the leases.

use std::sync::Arc;
use std::time::Duration;

use diesel::sql_types::{BigInt, Text, VarChar};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use lease_core::{BootClock, Clock, Held};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::engine::Engine;
use crate::line::{Answer, Book, Did, now};

/// How often it writes.
const EVERY: Duration = Duration::from_millis(200);
/// How long a write may take.
const LIMIT: Duration = Duration::from_secs(1);
/// After so many refusals in a row it knows.
const REFUSALS: u32 = 3;

/// A transaction that waits longer than this for its client is ended: a fence left open keeps a lease taken.
const POSTGRES_SESSION: &str = "SET idle_in_transaction_session_timeout = 500; SET statement_timeout = 1000";
const MYSQL_SESSION: &str = "SET SESSION wait_timeout = 1, innodb_lock_wait_timeout = 1";

/// Something that writes under a lease and never looks whether it still is one's own.
pub(super) struct Writer {
    engine: Engine,
    url: String,
    pod: i64,
    open: Option<Open>,
}

enum Open {
    Postgres(Box<AsyncPgConnection>),
    Mysql(AsyncMysqlConnection),
}

/// Why a write was not committed.
enum Failed {
    /// By the fence.
    Stale,
    /// Whatever else: it may have been committed.
    Error(String),
}

impl From<diesel::result::Error> for Failed {
    fn from(error: diesel::result::Error) -> Self {
        Self::Error(error.to_string())
    }
}

impl From<lease_postgres::fence::FenceError> for Failed {
    fn from(error: lease_postgres::fence::FenceError) -> Self {
        match error {
            lease_postgres::fence::FenceError::Stale { .. } => Self::Stale,
            error => Self::Error(super::told(&error)),
        }
    }
}

impl From<lease_mysql::fence::FenceError> for Failed {
    fn from(error: lease_mysql::fence::FenceError) -> Self {
        match error {
            lease_mysql::fence::FenceError::Stale { .. } => Self::Stale,
            error => Self::Error(super::told(&error)),
        }
    }
}

impl Writer {
    pub(super) fn new(engine: Engine, url: &str, pod: usize) -> Self {
        Self {
            engine,
            // The option is known to the leases' client alone, and without it there is no TLS here either.
            url: url.replace("?ssl-mode=disabled", ""),
            pod: i64::try_from(pod).expect("few pods"),
            open: None,
        }
    }

    /// Writes under whatever lease was given last, also after its end, until it has been refused some times.
    pub(super) async fn write_all(mut self, mut held: watch::Receiver<Option<Held>>, book: Arc<Book>) {
        let mut refusals = 0;
        loop {
            BootClock.sleep_until(BootClock.now() + EVERY).await;
            if held.has_changed().unwrap_or(false) {
                refusals = 0;
            }
            let Some(now_held) = held.borrow_and_update().clone().filter(|_| refusals < REFUSALS) else {
                continue;
            };
            let from = now();
            let done = timeout(LIMIT, self.write(&now_held)).await;
            let answer = match done {
                Ok(Ok(())) => Answer::Accepted,
                Ok(Err(Failed::Stale)) => Answer::Refused,
                // Whatever is left of the answer must not be read by the next one.
                failed => {
                    self.open = None;
                    if let Ok(Err(Failed::Error(why))) = failed {
                        eprintln!("{from} {}: a write: {why}", now_held.name().as_str());
                    }
                    Answer::Error
                }
            };
            refusals = if answer == Answer::Refused { refusals + 1 } else { 0 };
            let (name, token) = (now_held.name().as_str(), now_held.token().get());
            book.write(
                name,
                token,
                Did::Write {
                    from,
                    to: now(),
                    answer,
                },
            );
        }
    }

    async fn write(&mut self, held: &Held) -> Result<(), Failed> {
        let pod = self.pod;
        if self.open.is_none() {
            self.open = Some(connect(self.engine, &self.url).await?);
        }
        match self.open.as_mut() {
            Some(Open::Postgres(connection)) => {
                let write = async |connection: &mut AsyncPgConnection| postgres(connection, held, pod).await;
                connection.as_mut().transaction(write).await
            }
            Some(Open::Mysql(connection)) => {
                let is_cluster = self.engine == Engine::Galera;
                let write =
                    async |connection: &mut AsyncMysqlConnection| mysql(connection, held, pod, is_cluster).await;
                connection.transaction(write).await
            }
            None => Err(Failed::Error("no connection".to_owned())),
        }
    }
}

async fn connect(engine: Engine, url: &str) -> Result<Open, Failed> {
    if engine.is_postgres() {
        let connection = AsyncPgConnection::establish(url).await;
        let mut connection = connection.map_err(|error| Failed::Error(error.to_string()))?;
        connection.batch_execute(POSTGRES_SESSION).await?;
        Ok(Open::Postgres(Box::new(connection)))
    } else {
        let connection = AsyncMysqlConnection::establish(url).await;
        let mut connection = connection.map_err(|error| Failed::Error(error.to_string()))?;
        connection.batch_execute(MYSQL_SESSION).await?;
        Ok(Open::Mysql(connection))
    }
}

/// The fence first: it holds off a takeover until the commit. The ledger's row is locked until then too, so the numbers of
/// the journal are in the order of the commits.
async fn postgres(connection: &mut AsyncPgConnection, held: &Held, pod: i64) -> Result<(), Failed> {
    lease_postgres::fence::check(connection, held).await?;
    diesel::sql_query(
        "WITH next AS (UPDATE chaos_ledger SET writes = writes + 1 WHERE name = $1 RETURNING writes) \
         INSERT INTO chaos_journal (name, seq, token, pod) SELECT $1, writes, $2, $3 FROM next",
    )
    .bind::<VarChar, _>(held.name().as_str())
    .bind::<BigInt, _>(held.token().get())
    .bind::<BigInt, _>(pod)
    .execute(connection)
    .await?;
    Ok(())
}

/// The fence last. In a cluster, whose row locks are local to a node, what is written to has the token.
async fn mysql(connection: &mut AsyncMysqlConnection, held: &Held, pod: i64, is_cluster: bool) -> Result<(), Failed> {
    let (name, token) = (held.name().as_str(), held.token().get());
    let ledger = diesel::sql_query(if is_cluster {
        "UPDATE chaos_ledger SET writes = LAST_INSERT_ID(writes + 1), token = ? WHERE name = ? AND token <= ?"
    } else {
        "UPDATE chaos_ledger SET writes = LAST_INSERT_ID(writes + 1), token = GREATEST(token, ?) WHERE name = ? AND ? > 0"
    });
    let found = ledger
        .bind::<BigInt, _>(token)
        .bind::<Text, _>(name)
        .bind::<BigInt, _>(token);
    if found.execute(connection).await? == 0 {
        return Err(Failed::Stale);
    }
    diesel::sql_query("INSERT INTO chaos_journal (name, seq, token, pod) VALUES (?, LAST_INSERT_ID(), ?, ?)")
        .bind::<Text, _>(name)
        .bind::<BigInt, _>(token)
        .bind::<BigInt, _>(pod)
        .execute(connection)
        .await?;
    if !is_cluster {
        lease_mysql::fence::check(connection, held).await?;
    }
    Ok(())
}

//! Fences: a write that only the present holder can commit.
//!
//! A lease can't stop a process that was paused between its check and its write. A fence can, where the write goes to
//! the database that keeps the leases: it is checked in the write's own transaction, and holds off a takeover until that
//! ends (Kleppmann, "How to do distributed locking", 2016, has the problem; here the store itself is the judge).
//!
//! **Check it last**, right before the commit. MySQL knows no lock that keeps others from taking the lease and lets the
//! holder renew it, so while the fence is open the lease's renewals wait too.
//!
//! ```no_run
//! # use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl};
//! # use lease_mysql::{fence, lease_core::Held};
//! # async fn work(held: Held, connection: &mut AsyncMysqlConnection) -> Result<(), fence::FenceError> {
//! connection
//!     .transaction(async |connection| {
//!         diesel::sql_query("UPDATE accounts SET balance = balance + 1").execute(connection).await?;
//!         fence::check(connection, &held).await
//!     })
//!     .await
//! # }
//! ```
//!
//! On a **Galera cluster** row locks are local to a node: a takeover on another node does not wait for the fence. There let
//! what is written to carry the token, and refuse a smaller one.

use diesel_async::{AnsiTransactionManager, AsyncMysqlConnection, TransactionManager};
use lease_core::{Held, LeaseName, Token};

use crate::MysqlRepo;
use crate::engine::Session;
use crate::sql::{Value, first, now, statement};
use crate::target::Target;

statement! {
    /// Whether the row is this tenure's, live and unreleased: name, holder, token. It stays so until the transaction ends.
    Check -> (diesel::sql_types::BigInt):
    "SELECT 1 FROM task_leases WHERE name = $1 AND holder = $2 AND token = $3 AND released_at IS NULL ",
    "AND expires_at > ", now!(), " FOR UPDATE",
}

/// Why a fence did not pass. Roll the transaction back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// The lease is not this holder's any more: expired, released, evicted or taken over. Nothing may be written.
    #[error("lease {name:?} is not held under token {token} any more: nothing may be written under it", name = name.as_str(), token = token.get())]
    Stale {
        /// Which lease.
        name: LeaseName,
        /// The token it was held under.
        token: Token,
    },
    /// The connection is in no transaction that it knows of, so that the check would be over before the write. One that
    /// was begun by SQL text is not known: use [`MysqlRepo::fence_sql`] there.
    #[error("a fence holds until its transaction ends, and there is none: check it inside of `transaction`")]
    NoTransaction,
    /// The database had no answer.
    #[error("the fence could not be checked")]
    Database(#[from] diesel::result::Error),
}

/// Passes if and only if `held` is the present tenure of its lease in the table `task_leases`, and keeps it so until
/// the transaction of `connection` ends.
///
/// One statement, to be the last before the commit. Until the transaction ends nobody takes the lease over, though it
/// expires meanwhile, and nobody renews, releases or evicts it either: they wait. The statement itself waits for whoever
/// is at this very row.
///
/// # Errors
/// [`FenceError`]. A deadlock or a wait that takes too long shows as `Database`: roll back and try again. On MariaDB with
/// `innodb_snapshot_isolation`, the default since 11.6, so does a renewal since the snapshot of a REPEATABLE READ
/// transaction, by error 1020: use READ COMMITTED.
///
/// # Cancelling
/// Dropping the future leaves the statement under way: drop the connection too.
pub async fn check(connection: &mut AsyncMysqlConnection, held: &Held) -> Result<(), FenceError> {
    check_in(&Target::default(), connection, held).await
}

impl MysqlRepo {
    /// [`fence::check`](check) for this repo's [table](Self::table).
    ///
    /// # Errors
    /// As [`fence::check`](check).
    pub async fn check_fence(&self, connection: &mut AsyncMysqlConnection, held: &Held) -> Result<(), FenceError> {
        check_in(&self.target, connection, held).await
    }

    /// The statement of [`fence::check`](check) for another driver, as the last of a transaction of yours. Its three `?` are
    /// the lease's name, `held.holder()` and `held.token()`. It answers one row, or none for a stale holder: then roll back.
    #[must_use]
    pub fn fence_sql(&self) -> String {
        use crate::sql::Statement;
        let text = self.target.rewrite(Check::TEXT);
        let mut text = text.unwrap_or_else(|| Check::TEXT.to_owned());
        for place in ["$1", "$2", "$3"] {
            text = text.replace(place, "?");
        }
        text
    }
}

async fn check_in(target: &Target, connection: &mut AsyncMysqlConnection, held: &Held) -> Result<(), FenceError> {
    let status = AnsiTransactionManager::transaction_manager_status_mut(connection);
    if matches!(status.transaction_depth(), Ok(None)) {
        return Err(FenceError::NoTransaction);
    }
    let mut session = Session {
        connection,
        target,
        found: Default::default(),
    };
    let token = held.token();
    let values = [
        Value::Text(held.name().as_str()),
        Value::Text(held.holder().as_str()),
        Value::Int(token.get()),
    ];
    let rows: Vec<(i64,)> = session.rows(Check, &values).await?;
    match first(rows) {
        Some(_) => Ok(()),
        None => Err(FenceError::Stale {
            name: held.name().clone(),
            token,
        }),
    }
}

//! Fences: a write that only the present holder can commit.
//!
//! A lease can't stop a process that was paused between its check and its write. A fence can, where the write goes to
//! the database that keeps the leases: it is checked in the write's own transaction, and holds off a takeover until that
//! ends (Kleppmann, "How to do distributed locking", 2016, has the problem; here the store itself is the judge).
//!
//! ```no_run
//! # use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
//! # use lease_postgres::{fence, lease_core::Held};
//! # async fn work(held: Held, connection: &mut AsyncPgConnection) -> Result<(), fence::FenceError> {
//! connection
//!     .transaction(async |connection| {
//!         fence::check(connection, &held).await?;
//!         diesel::sql_query("UPDATE accounts SET balance = balance + 1").execute(connection).await?;
//!         Ok(())
//!     })
//!     .await
//! # }
//! ```

use diesel_async::{AnsiTransactionManager, AsyncPgConnection, TransactionManager};
use lease_core::{Held, LeaseName, Token};

use crate::PostgresRepo;
use crate::engine::Session;
use crate::sql::{Value, first, statement};
use crate::target::Target;

statement! {
    /// Whether the row is this tenure's, live and unreleased: name, holder, token. It stays so until the transaction ends,
    /// since a takeover, an eviction that frees at once, and a purge need the row for themselves. Renewals pass.
    Check -> (diesel::sql_types::Bool):
    "SELECT true FROM task_leases WHERE name = $1 AND holder = $2 AND token = $3 AND released_at IS NULL ",
    "AND expires_at > clock_timestamp() FOR KEY SHARE",
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
    /// was begun by SQL text is not known: use [`PostgresRepo::fence_sql`] there.
    #[error("a fence holds until its transaction ends, and there is none: check it inside of `transaction`")]
    NoTransaction,
    /// The database had no answer.
    #[error("the fence could not be checked")]
    Database(#[from] diesel::result::Error),
}

/// Passes if and only if `held` is the present tenure of its lease in the table `task_leases`, and keeps it so until
/// the transaction of `connection` ends.
///
/// One statement. Until the transaction ends nobody takes the lease over, though it expires meanwhile; its own renewals
/// go on. So keep the transaction short: an open fence is a lease that stays taken. It waits only while a takeover, an
/// `evict_now` or a purge of this very row is being committed.
///
/// # Errors
/// [`FenceError`]. In REPEATABLE READ and SERIALIZABLE a takeover since the transaction's snapshot may also show as a
/// serialization failure.
///
/// # Cancelling
/// Dropping the future leaves the statement under way: drop the connection too.
pub async fn check(connection: &mut AsyncPgConnection, held: &Held) -> Result<(), FenceError> {
    check_in(&Target::default(), connection, held).await
}

impl PostgresRepo {
    /// [`fence::check`](check) for this repo's [table](Self::table).
    ///
    /// # Errors
    /// As [`fence::check`](check).
    pub async fn check_fence(&self, connection: &mut AsyncPgConnection, held: &Held) -> Result<(), FenceError> {
        check_in(&self.target, connection, held).await
    }

    /// The statement of [`fence::check`](check) for another driver, in a transaction of yours: `$1` is the lease's name, `$2`
    /// `held.holder()`, `$3` `held.token()`. It answers one row, or none for a stale holder: then roll back.
    #[must_use]
    pub fn fence_sql(&self) -> String {
        use crate::sql::Statement;
        self.target
            .rewrite(Check::TEXT)
            .unwrap_or_else(|| Check::TEXT.to_owned())
    }
}

async fn check_in(target: &Target, connection: &mut AsyncPgConnection, held: &Held) -> Result<(), FenceError> {
    let status = AnsiTransactionManager::transaction_manager_status_mut(connection);
    if matches!(status.transaction_depth(), Ok(None)) {
        return Err(FenceError::NoTransaction);
    }
    let mut session = Session {
        connection,
        target,
        found: (),
    };
    let token = held.token();
    let values = [
        Value::Text(held.name().as_str()),
        Value::Text(held.holder().as_str()),
        Value::Int(token.get()),
    ];
    let rows: Vec<(bool,)> = session.rows(Check, &values).await?;
    match first(rows) {
        Some(_) => Ok(()),
        None => Err(FenceError::Stale {
            name: held.name().clone(),
            token,
        }),
    }
}

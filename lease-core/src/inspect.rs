//! [`Inspect`]: what an operator sees of leases and does to them.

use std::fmt;
use std::future::Future;
use std::time::{Duration, SystemTime};

use crate::{Label, LeaseName, Note, Release, RepoError};

/// How long a row stays for [`Inspect::purge`] after its lease expired, even if asked to delete younger ones: a minute.
///
/// A new row's token comes from the database's clock, read by a statement that may be overtaken before it writes. If
/// meanwhile another were granted the lease, released it and had its row deleted, the statement would hand out a token
/// that is smaller than that one's. No statement of a backend is under way for this long.
pub const PURGE_MARGIN: Duration = Duration::from_secs(60);

/// Looking at leases, and taking them away, by hand. Every backend has it beside [`Repo`](crate::Repo).
///
/// It names operators by a [`Label`]. No method of it lets two holders run, but for [`evict_now`](Self::evict_now).
///
/// # Cancelling
/// Dropping a future leaves it open whether the statement took effect. Each method can simply be called again.
pub trait Inspect: Send + Sync + 'static {
    /// All rows, by name. A plain read.
    ///
    /// # Errors
    /// [`RepoError`] when the store has no answer.
    fn list(&self) -> impl Future<Output = Result<Vec<LeaseRow>, RepoError>> + Send;

    /// One row. A plain read.
    ///
    /// # Errors
    /// [`RepoError`] when the store has no answer.
    fn get(&self, name: &LeaseName) -> impl Future<Output = Result<Option<LeaseRow>, RepoError>> + Send;

    /// Takes a live lease from its holder, who is told at its next renewal and stops in its own time.
    ///
    /// One update puts `evict/{by}` in as the holder with the next token and leaves `expires_at`: nobody starts
    /// before the old holder must have stopped.
    ///
    /// # Errors
    /// [`RepoError`] when the store has no answer.
    fn evict(
        &self,
        name: &LeaseName,
        by: &Label,
        reason: &Note,
    ) -> impl Future<Output = Result<Evict, RepoError>> + Send;

    /// Frees a live lease at once. **Exclusion then rests on the fencing token alone**: the old holder may still run.
    ///
    /// # Errors
    /// [`RepoError`] when the store has no answer.
    fn evict_now(
        &self,
        name: &LeaseName,
        by: &Label,
        reason: &Note,
    ) -> impl Future<Output = Result<Evict, RepoError>> + Send;

    /// Keeps everybody off a lease for a while, its holder included, who is told as by [`evict`](Self::evict).
    ///
    /// The holder becomes `pause/{by}`, and the row lives for `duration` from now, or to the old holder's expiry if
    /// that is later. A pause that stands is replaced; it is never shortened before that expiry.
    ///
    /// # Errors
    /// [`RepoError`] when the store has no answer.
    fn pause(
        &self,
        name: &LeaseName,
        duration: Duration,
        by: &Label,
        reason: &Note,
    ) -> impl Future<Output = Result<(), RepoError>> + Send;

    /// Ends a pause, whoever made it. The lease is free at once, or when the displaced holder's time is over.
    ///
    /// `NotHeld` when the lease is not paused.
    ///
    /// # Errors
    /// [`RepoError`] when the store has no answer.
    fn resume(&self, name: &LeaseName) -> impl Future<Output = Result<Release, RepoError>> + Send;

    /// Deletes rows that expired at least `older_than` ago, and at least [`PURGE_MARGIN`], and answers how many.
    ///
    /// A plain read, then one delete per name that repeats the condition. A row whose token is not behind the
    /// database's clock stays, since a fresh row would not start above it.
    ///
    /// # Errors
    /// [`RepoError`] when the store has no answer. Rows deleted before stay deleted.
    fn purge(&self, older_than: Duration) -> impl Future<Output = Result<u64, RepoError>> + Send;
}

/// Answer to [`Inspect::evict`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Evict {
    /// Taken away. Others may start after this time: the old holder's, zero after `evict_now`.
    Evicted {
        /// How long from now the row stays live.
        free_in: Duration,
    },
    /// Nobody has it.
    NotHeld,
}

/// A row as it was when it was read. Texts are lossy: a damaged row is shown, not an error.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LeaseRow {
    /// The column `name`.
    pub name: String,
    /// The column `holder`.
    pub holder: String,
    /// The column `token`. Any number, since a damaged table can hold any.
    pub token: i64,
    /// When this tenure was granted; of a pause, from when on it may be ended, which is in the future while a holder's time lasts.
    pub acquired_at: DbTime,
    /// When the row stops being live.
    pub expires_at: DbTime,
    /// When it was released, if it was.
    pub released_at: Option<DbTime>,
    /// What an operator wrote.
    pub note: Option<String>,
    /// The database's clock when the row was read.
    pub read_at: DbTime,
}

impl LeaseRow {
    /// A row with neither release nor note; both fields are public.
    #[must_use]
    pub fn new(name: String, holder: String, token: i64, times: RowTimes) -> Self {
        let RowTimes {
            acquired_at,
            expires_at,
            read_at,
        } = times;
        Self {
            name,
            holder,
            token,
            acquired_at,
            expires_at,
            released_at: None,
            note: None,
            read_at,
        }
    }

    /// How long it still had to live by the database's clock when it was read; `None` once expired.
    #[must_use]
    pub fn expires_in(&self) -> Option<Duration> {
        let left = self.expires_at.as_micros().saturating_sub(self.read_at.as_micros());
        u64::try_from(left)
            .ok()
            .filter(|left| *left > 0)
            .map(Duration::from_micros)
    }

    /// Whether nobody else can be granted it: the exact complement of expired.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.expires_in().is_some()
    }
}

/// The three times every [`LeaseRow`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowTimes {
    /// See [`LeaseRow::acquired_at`].
    pub acquired_at: DbTime,
    /// See [`LeaseRow::expires_at`].
    pub expires_at: DbTime,
    /// See [`LeaseRow::read_at`].
    pub read_at: DbTime,
}

/// A time by the *database's* clock, in microseconds since 1970-01-01 UTC. For people; it never meets a local clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DbTime(i64);

impl DbTime {
    /// A time from microseconds since 1970-01-01 UTC.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01 UTC.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }
}

impl From<DbTime> for SystemTime {
    /// For formatting with a date library.
    fn from(time: DbTime) -> Self {
        let distance = Duration::from_micros(time.0.unsigned_abs());
        if time.0 < 0 {
            Self::UNIX_EPOCH - distance
        } else {
            Self::UNIX_EPOCH + distance
        }
    }
}

impl fmt::Display for DbTime {
    /// Seconds since 1970, with six decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micros = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    }
}

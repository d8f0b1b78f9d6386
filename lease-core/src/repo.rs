//! The backend contract: [`Repo`] and its laws.

use std::future::{Future, pending};
use std::time::Duration;

use crate::{Holder, LeaseName, RepoError, Token};

/// A store of leases: what a backend implements.
///
/// Users don't call it; they give it to `Lease`. Whoever implements it writes `async fn`s and runs the conformance
/// suite of `lease-testkit`, which tests each law.
///
/// # Laws
/// - **L1** At most one holder has a live row. *Expired* is `expires_at <= now`, *live* its exact complement.
///   `acquire` is granted iff there is no row, or it has expired, or it is live and this very holder's and not
///   released (a retry). A grant clears `released_at` and `note`.
/// - **L2** `Granted` carries a fencing token that strictly increases per name over every grant that is no retry:
///   the greater of the old token plus one and the database's clock in microseconds; for a new row that clock.
///   A retry extends like a renewal. Renewals and retries keep token and `acquired_at`.
/// - **L3** `renew` extends to now + ttl iff name and holder match and the row is live and not released: an expired
///   lease is lost even if nobody took it yet. It never shortens and never revives. When it matched nothing, one
///   read says why, and may find that it did renew.
/// - **L4** `release` sets `released_at` to now and `expires_at` to the later of now and `acquired_at + at_least_for`,
///   iff name and holder match and it was not released before; an expired row's `expires_at` is never raised.
///   Else `NotHeld`, and nothing changes. Until `expires_at` the row stays live for everyone.
/// - **L5** One operation touches its own rows only, in autocommit or a transaction of its own, on the repo's own
///   connection, never in a caller's transaction. Session settings of a foreign pool are left as they were found.
/// - **L6** Only the database's clock judges expiry; only durations travel to it, in microseconds.
/// - **L7** Names are compared byte for byte.
/// - **L8** A dropped future leaves no broken connection in the pool.
/// - **L9** Whatever the server's default isolation level, no grant is doubled. Conflicts are retried inside, within
///   [`Claim::limit`], and never reported as busy.
/// - **L10** A failure's [`RepoErrorKind`](crate::RepoErrorKind) says what to do.
///
/// # Cancelling
/// Dropping a future leaves it open whether the statement took effect; the keeper then undoes it by its holder.
pub trait Repo: Send + Sync + 'static {
    /// Takes the lease for `claim.holder` if it is free (L1, L2).
    ///
    /// # Errors
    /// [`RepoError`]: not known whether it was granted.
    fn acquire(&self, claim: &Claim) -> impl Future<Output = Result<Acquire, RepoError>> + Send;

    /// Extends the lease if `claim.holder` still has it (L3).
    ///
    /// # Errors
    /// [`RepoError`]: not known whether it was renewed.
    fn renew(&self, claim: &Claim) -> impl Future<Output = Result<Renew, RepoError>> + Send;

    /// Gives the lease up (L4).
    ///
    /// # Errors
    /// [`RepoError`]: not known whether it was released.
    fn release(&self, claim: &Claim) -> impl Future<Output = Result<Release, RepoError>> + Send;

    /// Renews several leases, no two of one name. The answers have the length and the order of `claims`.
    ///
    /// A row that is locked is skipped, not waited for: an error of kind `Conflict`. An error means unknown, for that lease
    /// alone; the keeper renews it singly if any other was answered. All claims have the same limit. As provided, one after the other.
    fn renew_all(&self, claims: &[Claim]) -> impl Future<Output = Vec<Result<Renew, RepoError>>> + Send {
        async move {
            let mut answers = Vec::with_capacity(claims.len());
            for claim in claims {
                answers.push(self.renew(claim).await);
            }
            answers
        }
    }

    /// How many leases [`renew_all`](Self::renew_all) renews at the price of one. As provided one: the keeper then renews
    /// each by [`renew`](Self::renew), side by side.
    fn batch_size(&self) -> usize {
        1
    }

    /// Resolves when the lease may have become free: a hint to try again, never proof. As provided, never.
    ///
    /// Called when a waiting acquire was told that somebody has the lease, and polled where the operations are. It is called anew
    /// after each hint; one for what happened between two calls spares the waiting one a pause. Whoever waits asks now and then all
    /// the same, so a hint may get lost or come for nothing.
    ///
    /// # Cancelling
    /// Dropping the future ends the waiting.
    fn freed(&self, name: &LeaseName) -> impl Future<Output = ()> + Send {
        let _ = name;
        pending()
    }
}

/// One operation's arguments: which lease, for whom, for how long.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Claim {
    /// Which lease.
    pub name: LeaseName,
    /// For which tenure.
    pub holder: Holder,
    /// How long from the database's now a grant or renewal lasts.
    pub ttl: Duration,
    /// On release: how long from `acquired_at` the lease stays taken at the least. Zero frees it at once.
    pub at_least_for: Duration,
    /// How long the operation may take, waiting for a connection and inner retries included.
    pub limit: Duration,
}

impl Claim {
    /// A claim with no minimum and a limit of five seconds.
    #[must_use]
    pub fn new(name: LeaseName, holder: Holder, ttl: Duration) -> Self {
        Self {
            name,
            holder,
            ttl,
            at_least_for: Duration::ZERO,
            limit: Duration::from_secs(5),
        }
    }

    /// Sets [`at_least_for`](Self::at_least_for).
    #[must_use]
    pub fn at_least_for(mut self, at_least_for: Duration) -> Self {
        self.at_least_for = at_least_for;
        self
    }

    /// Sets [`limit`](Self::limit).
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The ttl in microseconds, a fraction rounded up: the row may outlive the tenure, never the other way round.
    #[must_use]
    pub fn ttl_us(&self) -> i64 {
        microseconds(self.ttl)
    }

    /// The minimum in microseconds, a fraction rounded up.
    #[must_use]
    pub fn at_least_for_us(&self) -> i64 {
        microseconds(self.at_least_for)
    }
}

/// A duration in whole microseconds as a database takes it, a fraction rounded up. Saturates at 292,000 years.
#[must_use]
pub fn microseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(i64::MAX)
}

/// Answer to [`Repo::acquire`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Acquire {
    /// The lease is ours for a ttl. Send the token along with each write.
    Granted(Token),
    /// Somebody else has it. `None` when the race was lost and it is not known to whom, or when that one has expired meanwhile.
    Busy(Option<Incumbent>),
}

/// Answer to [`Repo::renew`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Renew {
    /// The lease is ours for a further ttl.
    Renewed,
    /// The lease is not ours any more.
    Lost(Loss),
}

/// Answer to [`Repo::release`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Release {
    /// The row is released. It is free at once, or when its minimum is over.
    Released,
    /// The row is not this holder's, or was released before. Nothing changed.
    NotHeld,
}

/// Who has a live row, for people to read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Incumbent {
    /// The text in the column `holder`; what is no UTF-8 is replaced.
    pub holder: String,
    /// How long from now the row stays live if nobody renews it.
    pub expires_in: Duration,
}

impl Incumbent {
    /// An incumbent as read from a row.
    #[must_use]
    pub fn new(holder: impl Into<String>, expires_in: Duration) -> Self {
        Self {
            holder: holder.into(),
            expires_in,
        }
    }
}

/// Why a renewal found the lease lost.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// Another holder stands in the row.
    Taken(Incumbent),
    /// There is no row.
    Gone,
    /// The row is still this holder's, but its time is over.
    Expired,
    /// This holder has released it.
    Released,
    /// An operator evicted or paused it. Nobody is granted it before the time this holder had is over.
    ///
    /// Reported only while the row is live. After `evict_now` it is `Taken`, by the holder `evict/{by}`.
    Evicted {
        /// Who did, as given to `evict` or `pause`.
        by: String,
    },
}

impl Loss {
    /// What a row says that is not ours to renew: the shared reading of L3's "one read says why".
    ///
    /// `holder` is the row's; `expires_in` is `None` once the row has expired.
    #[must_use]
    pub fn of_row(holder: &str, ours: &Holder, released: bool, expires_in: Option<Duration>) -> Self {
        if holder == ours.as_str() {
            return if released { Self::Released } else { Self::Expired };
        }
        let by = holder.strip_prefix("evict/").or_else(|| holder.strip_prefix("pause/"));
        match (by, expires_in) {
            (Some(by), Some(_)) => Self::Evicted { by: by.to_owned() },
            (_, expires_in) => Self::Taken(Incumbent::new(holder, expires_in.unwrap_or_default())),
        }
    }
}

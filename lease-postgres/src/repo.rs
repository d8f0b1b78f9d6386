//! [`PostgresRepo`]: the backend.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use diesel::pg::data_types::PgTimestamp;
use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::deadpool::Pool;
use lease_core::{
    Acquire, Claim, Incumbent, LeaseName, Loss, Operation, Release, Renew, Repo, RepoError, RepoErrorKind, Token,
};
use lease_diesel::{Failure, Subject, Task, text};
use tokio::runtime::Handle;

use crate::engine::{Postgres, Session, Source};
use crate::listen::Listener;
use crate::session::Settings;
use crate::sql::{
    self,
    Value::{Int, Ints, Text, Texts},
};
use crate::target::Target;
use crate::value::{Lossy, left, span};

/// Leases in the table `task_leases` of a PostgreSQL database.
///
/// Made by [`connect`](Self::connect) or, for a pool that the application has, by [`new`](Self::new). Each of the
/// three operations is one round trip. A clone has the same settings and, if it was made by `connect`, a pool of its
/// own.
///
/// Its `Debug` shows neither the URL nor the password.
#[derive(Clone)]
pub struct PostgresRepo {
    pub(crate) source: Source,
    pub(crate) target: Target,
    pub(crate) delete_on_release: bool,
    listener: Option<Listener>,
}

impl PostgresRepo {
    /// A repo for the database at `url`, `postgres://user:password@host:port/database`.
    ///
    /// It opens one connection, to find out at start-up what is wrong, and closes it. Its pool of [four](Self::connections) opens when
    /// `Lease` first uses it, on the thread of the keeper, so that it serves no other runtime; [`migrate`],
    /// [`check_schema`] and the methods of [`Inspect`](lease_core::Inspect) open a connection each where they are called.
    ///
    /// Options in the URL work as in libpq; `application_name` is `lease` unless it is given. The session's
    /// `statement_timeout`, `lock_timeout` and `enable_seqscan` are set. The files that `sslrootcert`, `sslcert` and
    /// `sslkey` name are read here, once.
    ///
    /// # Errors
    /// `Config` for a URL that can't be used, `Denied` for a wrong password, role or database, `Unavailable` when the
    /// server gives no connection within five seconds. None of them shows the password.
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O.
    ///
    /// # Cancelling
    /// Dropping the future closes the connection.
    ///
    /// [`migrate`]: Self::migrate
    /// [`check_schema`]: Self::check_schema
    pub async fn connect(url: &str) -> Result<Self, RepoError> {
        let settings = Arc::new(Settings::parse(url)?);
        settings.probe().await?;
        Ok(Self::with_source(Source::own(settings)))
    }

    /// As [`connect`](Self::connect), but nothing is opened: for programs that start while the database may be away, or that
    /// take a lease at once. What is wrong with the server is the answer to the first operation.
    ///
    /// # Errors
    /// `Config` for a URL that can't be used. It does not show the password.
    pub fn lazy(url: &str) -> Result<Self, RepoError> {
        Ok(Self::with_source(Source::own(Arc::new(Settings::parse(url)?))))
    }

    /// A repo on the application's own pool, whose connections are driven by the current runtime.
    ///
    /// Each operation runs there as a task. So the lease depends on that runtime and on a free connection: if the
    /// application blocks all workers, shuts the runtime down, or keeps the whole pool busy, renewals fail, the work
    /// is told in time and the lease is lost. [`connect`](Self::connect) has none of this.
    ///
    /// The sessions' settings are left as they are found. A `statement_timeout` a little above five seconds, and
    /// `enable_seqscan = off`, are worth setting in the pool. A connection is taken out of the pool when a statement
    /// on it got no answer.
    ///
    /// # Errors
    /// `Config` outside a tokio runtime; there use [`with_handle`](Self::with_handle).
    pub fn new(pool: Pool<AsyncPgConnection>) -> Result<Self, RepoError> {
        Ok(Self::with_source(Source::here(pool)?))
    }

    /// As [`new`](Self::new), for connections that are driven by the runtime of `home`.
    #[must_use]
    pub fn with_handle(pool: Pool<AsyncPgConnection>, home: Handle) -> Self {
        Self::with_source(Source::foreign(pool, home))
    }

    /// Another table than `task_leases` in the search path: `"table"`, or `"schema.table"`.
    ///
    /// The names are taken as they are, with their case, and quoted in each statement. Pods exclude each other only
    /// through the same table. Statements on a table with a name of its own are prepared once per connection too.
    ///
    /// # Errors
    /// `Config` for a name that the database would cut or refuse: an empty one, more than 63 bytes, control characters.
    pub fn table(mut self, name: &str) -> Result<Self, RepoError> {
        self.target = Target::parse(name)?;
        Ok(self)
    }

    /// How many connections a repo made by [`connect`](Self::connect) has at most; four unless it is told. They are opened
    /// when they are needed.
    ///
    /// Four serve hundreds of leases, since a renewal takes one for a millisecond. More help a process that takes and releases
    /// leases all the time, as fast as the database goes.
    ///
    /// # Errors
    /// `Config` for zero, and for a pool that is the application's.
    pub fn connections(mut self, count: usize) -> Result<Self, RepoError> {
        self.source = self.source.sized(count)?;
        Ok(self)
    }

    /// Whether a release deletes the row, once no minimum is left to wait for, as the Go package did. Off by default.
    ///
    /// What is lost: the row carries the fencing token. After a delete the next token comes from the database's clock
    /// alone, so tokens grow only as long as that clock does. And a release waits for an open fence of its own lease.
    #[must_use]
    pub fn delete_on_release(mut self, delete: bool) -> Self {
        self.delete_on_release = delete;
        self
    }

    /// Whether a release tells those who wait for the lease, by `NOTIFY`, and whether who waits here listens. Off by default: it
    /// costs releases, and a connection of its own for each repo in which somebody waits.
    ///
    /// It is for repos made by [`connect`](Self::connect) or [`lazy`](Self::lazy) and for all pods that share the table. With the
    /// application's pool releases tell, but who waits polls. See the crate's docs for what it costs, and for when
    /// it polls all the same.
    #[must_use]
    pub fn notify(mut self, notify: bool) -> Self {
        self.listener = notify.then(Listener::default);
        self
    }

    fn with_source(source: Source) -> Self {
        Self {
            source,
            target: Target::default(),
            delete_on_release: false,
            listener: None,
        }
    }
}

impl fmt::Debug for PostgresRepo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresRepo")
            .field("source", &self.source)
            .field("table", &format_args!("{}", self.target))
            .field("delete_on_release", &self.delete_on_release)
            .field("notify", &self.listener.is_some())
            .finish()
    }
}

impl Repo for PostgresRepo {
    async fn acquire(&self, claim: &Claim) -> Result<Acquire, RepoError> {
        self.source
            .run(&self.target, Acquiring(claim.clone()), claim.limit)
            .await
    }

    async fn renew(&self, claim: &Claim) -> Result<Renew, RepoError> {
        self.source
            .run(&self.target, Renewing(claim.clone()), claim.limit)
            .await
    }

    fn batch_size(&self) -> usize {
        1_000
    }

    async fn renew_all(&self, claims: &[Claim]) -> Vec<Result<Renew, RepoError>> {
        let Some(Claim { limit, .. }) = claims.first() else {
            return Vec::new();
        };
        let answers = self
            .source
            .run(&self.target, RenewingAll(claims.to_vec()), *limit)
            .await;
        answers.unwrap_or_else(|error| {
            let each = claims.iter().map(|claim| Err(error.clone().with_lease(&claim.name)));
            each.collect()
        })
    }

    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        let task = Releasing {
            claim: claim.clone(),
            delete: self.delete_on_release,
            tell: self.listener.is_some(),
        };
        self.source.run(&self.target, task, claim.limit).await
    }

    async fn freed(&self, name: &LeaseName) {
        match (&self.listener, self.source.settings()) {
            (Some(listener), Some(settings)) => listener.freed(settings, &self.target, name).await,
            _ => pending().await,
        }
    }
}

struct Acquiring(Claim);

/// Columns such as `date` cut the expiry, and others would be granted what was just granted to us.
const CUT: &str = "the row expires sooner than it was told to: its times are cut by the columns' types, or the \
                   server's clock was set forward meanwhile";

impl Task<Postgres> for Acquiring {
    type Answer = Acquire;

    fn subject(&self) -> Subject {
        Subject::of(Operation::Acquire, &self.0.name)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Acquire, Failure> {
        type Answer = (Option<i64>, Option<Lossy>, Option<PgTimestamp>, PgTimestamp);
        let values = [
            Text(self.0.name.as_str()),
            Text(self.0.holder.as_str()),
            Int(span(self.0.ttl)),
        ];
        let (token, holder, expires_at, now): Answer = sql::only(session.rows(sql::Acquire, &values).await?)?;
        let left = expires_at.and_then(|expires_at| left(expires_at, now));
        if let Some(token) = token {
            // The answer was here within the limit, so that much of the ttl is left.
            let least = Duration::from_micros(span(self.0.ttl).unsigned_abs()).saturating_sub(self.0.limit);
            return match Token::new(token) {
                Ok(_) if left.unwrap_or_default() < least => Err(Failure::Decided(
                    self.subject()
                        .error(RepoErrorKind::SchemaMismatch)
                        .with_source(text(CUT)),
                )),
                Ok(token) => Ok(Acquire::Granted(token)),
                Err(error) => Err(Failure::Decided(
                    self.subject().error(RepoErrorKind::Other).with_source(error),
                )),
            };
        }
        let incumbent = holder.and_then(|holder| Some(Incumbent::new(holder.0, left?)));
        Ok(Acquire::Busy(incumbent))
    }
}

struct Renewing(Claim);

impl Task<Postgres> for Renewing {
    type Answer = Renew;

    fn subject(&self) -> Subject {
        Subject::of(Operation::Renew, &self.0.name)
    }

    /// When the update matched nothing, one read says why. If that finds the lease ours and live, something moved in
    /// between, and the update is tried again.
    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Renew, Failure> {
        let Claim { name, holder, ttl, .. } = &self.0;
        loop {
            let values = [Text(name.as_str()), Text(holder.as_str()), Int(span(*ttl))];
            if session.execute(sql::Renew, &values).await? > 0 {
                return Ok(Renew::Renewed);
            }
            let rows: Vec<(Lossy, Option<PgTimestamp>, PgTimestamp, PgTimestamp)> =
                session.rows(sql::Why, &values[..1]).await?;
            let Some((row_holder, released_at, expires_at, now)) = sql::first(rows) else {
                return Ok(Renew::Lost(Loss::Gone));
            };
            let expires_in = left(expires_at, now);
            if row_holder.0 != holder.as_str() || released_at.is_some() || expires_in.is_none() {
                let loss = Loss::of_row(&row_holder.0, holder, released_at.is_some(), expires_in);
                return Ok(Renew::Lost(loss));
            }
        }
    }
}

struct RenewingAll(Vec<Claim>);

impl Task<Postgres> for RenewingAll {
    type Answer = Vec<Result<Renew, RepoError>>;

    fn subject(&self) -> Subject {
        Subject::new(Operation::Renew)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Self::Answer, Failure> {
        type Row = (
            bool,
            Option<Lossy>,
            Option<PgTimestamp>,
            Option<PgTimestamp>,
            PgTimestamp,
        );
        let names: Vec<&str> = self.0.iter().map(|claim| claim.name.as_str()).collect();
        let holders: Vec<&str> = self.0.iter().map(|claim| claim.holder.as_str()).collect();
        let ttls: Vec<i64> = self.0.iter().map(|claim| span(claim.ttl)).collect();
        let values = [Texts(&names), Texts(&holders), Ints(&ttls)];
        let rows: Vec<Row> = session.rows(sql::RenewAll, &values).await?;
        let answers = self
            .0
            .iter()
            .zip(rows)
            .map(|(claim, (renewed, holder, released_at, expires_at, now))| {
                if renewed {
                    return Ok(Renew::Renewed);
                }
                let Some((row_holder, expires_at)) = holder.zip(expires_at) else {
                    return Ok(Renew::Lost(Loss::Gone));
                };
                let (released, expires_in) = (released_at.is_some(), left(expires_at, now));
                if row_holder.0 == claim.holder.as_str() && !released && expires_in.is_some() {
                    let error = Subject::of(Operation::Renew, &claim.name).error(RepoErrorKind::Conflict);
                    return Err(error.with_source(text("the row is locked")).never_executed());
                }
                Ok(Renew::Lost(Loss::of_row(
                    &row_holder.0,
                    &claim.holder,
                    released,
                    expires_in,
                )))
            });
        Ok(answers.collect())
    }
}

struct Releasing {
    claim: Claim,
    delete: bool,
    tell: bool,
}

impl Task<Postgres> for Releasing {
    type Answer = Release;

    fn subject(&self) -> Subject {
        Subject::of(Operation::Release, &self.claim.name).deleting(self.delete)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Release, Failure> {
        let values = [
            Text(self.claim.name.as_str()),
            Text(self.claim.holder.as_str()),
            Int(span(self.claim.at_least_for)),
        ];
        let deleting = |rows| sql::only(rows).map(|(count,): (i64,)| count > 0);
        let released = match (self.delete, self.tell) {
            (false, false) => session.execute(sql::Release, &values).await? > 0,
            (false, true) => session.execute(sql::ReleaseAndTell, &values).await? > 0,
            (true, false) => deleting(session.rows(sql::ReleaseOrDelete, &values).await?)?,
            (true, true) => deleting(session.rows(sql::ReleaseOrDeleteAndTell, &values).await?)?,
        };
        Ok(if released { Release::Released } else { Release::NotHeld })
    }
}

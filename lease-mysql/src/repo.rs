//! [`MysqlRepo`]: the backend.

use std::fmt;
use std::sync::Arc;

use diesel_async::AsyncMysqlConnection;
use diesel_async::pooled_connection::deadpool::Pool;
use lease_core::{Acquire, Claim, Incumbent, Loss, Operation, Release, Renew, Repo, RepoError, RepoErrorKind, Token};
use lease_diesel::{Failure, Subject, Task};
use tokio::runtime::Handle;

use crate::batch::RenewingAll;
use crate::engine::{Mysql, Session, Source, roll_back};
use crate::error::is_duplicate;
use crate::row::Seen;
use crate::session::Settings;
use crate::sql::{self, Value::Int, Value::Text};
use crate::target::Target;
use crate::value::{left, lossy, span};

/// Leases in the table `task_leases` of a MySQL or MariaDB database.
///
/// Made by [`connect`](Self::connect) or, for a pool that the application has, by [`new`](Self::new). A renewal and a
/// release are one round trip each, an acquire is one for whoever does not get the lease, two for whoever does, and three where
/// there was no row. A clone
/// has the same settings and, if it was made by `connect`, a pool of its own.
///
/// Its `Debug` shows neither the URL nor the password.
#[derive(Clone)]
pub struct MysqlRepo {
    pub(crate) source: Source,
    pub(crate) target: Target,
    pub(crate) delete_on_release: bool,
}

impl MysqlRepo {
    /// A repo for the database at `url`, `mysql://user:password@host:port/database`.
    ///
    /// It opens one connection, to find out at start-up what is wrong, and closes it. Its pool of [four](Self::connections)
    /// opens when `Lease` first uses it, on the thread of the keeper, so that it serves no other runtime; [`migrate`],
    /// [`check_schema`] and the methods of [`Inspect`](lease_core::Inspect) open a connection each where they are called.
    ///
    /// The URL's options for encryption are in the [crate's docs](crate#connections), and so are the settings that each
    /// session gets. The files that `ssl-ca`, `ssl-cert` and `ssl-key` name are read here, once.
    ///
    /// # Errors
    /// `Config` for a URL that can't be used and for a server whose certificate is not accepted, `Denied` for a wrong
    /// password, user or database, `Unavailable` when the server gives no connection within five seconds. None of them
    /// shows the password.
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
    /// The sessions' settings are left as they are found, `autocommit` too, for which each operation asks first. An
    /// `innodb_lock_wait_timeout` of five seconds is worth setting in the pool. A connection is taken out of the pool when
    /// a statement on it got no answer.
    ///
    /// # Errors
    /// `Config` outside a tokio runtime; there use [`with_handle`](Self::with_handle).
    pub fn new(pool: Pool<AsyncMysqlConnection>) -> Result<Self, RepoError> {
        Ok(Self::with_source(Source::here(pool)?))
    }

    /// As [`new`](Self::new), for connections that are driven by the runtime of `home`.
    #[must_use]
    pub fn with_handle(pool: Pool<AsyncMysqlConnection>, home: Handle) -> Self {
        Self::with_source(Source::foreign(pool, home))
    }

    /// Another table than `task_leases` in the connection's database: `"table"`, or `"database.table"`.
    ///
    /// The names are taken as they are, and quoted in each statement. Pods exclude each other only through the same table.
    /// Statements on a table with a name of its own are prepared once per connection too.
    ///
    /// # Errors
    /// `Config` for a name that the server would change or refuse: an empty one, more than 64 characters, control
    /// characters.
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
    /// alone, so tokens grow only as long as that clock does.
    #[must_use]
    pub fn delete_on_release(mut self, delete: bool) -> Self {
        self.delete_on_release = delete;
        self
    }

    fn with_source(source: Source) -> Self {
        Self {
            source,
            target: Target::default(),
            delete_on_release: false,
        }
    }
}

impl fmt::Debug for MysqlRepo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlRepo")
            .field("source", &self.source)
            .field("table", &format_args!("{}", self.target))
            .field("delete_on_release", &self.delete_on_release)
            .finish()
    }
}

impl Repo for MysqlRepo {
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
        let task = RenewingAll(claims.to_vec());
        let answers = self.source.run(&self.target, task, *limit).await;
        answers.unwrap_or_else(|error| {
            let each = claims.iter().map(|claim| Err(error.clone().with_lease(&claim.name)));
            each.collect()
        })
    }

    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        let task = Releasing {
            claim: claim.clone(),
            delete: self.delete_on_release,
            tried: false,
        };
        self.source.run(&self.target, task, claim.limit).await
    }
}

struct Acquiring(Claim);

/// How often an acquire looks again after it lost a race, until it says so without a name.
const LOOKS: u32 = 8;

impl Task<Mysql> for Acquiring {
    type Answer = Acquire;

    fn subject(&self) -> Subject {
        Subject::of(Operation::Acquire, &self.0.name)
    }

    /// Looks first, so that whoever does not get the lease takes no lock. A free one is then taken by a statement that only
    /// one of those who saw it free can succeed with, and that waits for no lock.
    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Acquire, Failure> {
        let subject = self.subject();
        let Claim { name, holder, ttl, .. } = &self.0;
        // The token of a free row that could not be taken. If it is still the same, somebody has the row locked.
        let mut refused = None;
        for _ in 0..LOOKS {
            let seen = Seen::look(session, &subject, name).await?;
            let grant = [Text(name.as_str()), Text(holder.as_str()), Int(span(*ttl))];
            match &seen.row {
                Some(row) if row.is_held_by(holder) => match renew(session, &subject, &self.0).await? {
                    Renew::Renewed => return granted(&subject, row.token),
                    Renew::Lost(_) => {}
                },
                Some(row) if row.is_live() => {
                    let incumbent = left(row.left_us).map(|left| Incumbent::new(lossy(&row.holder), left));
                    return Ok(Acquire::Busy(incumbent));
                }
                Some(row) if refused == Some(row.token) => return Ok(Acquire::Busy(None)),
                Some(row) => {
                    let [name, holder, ttl] = grant;
                    let values = [name, holder, ttl, Int(seen.next_token), Int(row.token)];
                    if session.execute(sql::Take, &values).await? > 0 {
                        return granted(&subject, seen.next_token);
                    }
                    refused = Some(row.token);
                }
                None => {
                    if made(session, &grant).await?
                        && let Some(row) = Seen::look(session, &subject, name).await?.row
                        && row.is_held_by(holder)
                    {
                        return granted(&subject, row.token);
                    }
                }
            }
        }
        Ok(Acquire::Busy(None))
    }
}

fn granted(subject: &Subject, token: i64) -> Result<Acquire, Failure> {
    match Token::new(token) {
        Ok(token) => Ok(Acquire::Granted(token)),
        Err(error) => Err(subject.error(RepoErrorKind::Other).with_source(error).into()),
    }
}

/// Makes a row, unless one is there meanwhile.
async fn made(session: &mut Session<'_>, grant: &[sql::Value<'_>]) -> Result<bool, Failure> {
    match session.execute(sql::Make, grant).await {
        Ok(_) => Ok(true),
        Err(error) if is_duplicate(&error) => {
            roll_back(session).await?;
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// One update. When it changed nothing, a look says why: the lease is lost, or the row lives for that ttl already, or
/// something moved in between and the update is tried again.
async fn renew(session: &mut Session<'_>, subject: &Subject, claim: &Claim) -> Result<Renew, Failure> {
    let ttl = span(claim.ttl);
    loop {
        let values = [Text(claim.name.as_str()), Text(claim.holder.as_str()), Int(ttl)];
        if session.execute(sql::Renew, &values).await? > 0 {
            return Ok(Renew::Renewed);
        }
        match Seen::look(session, subject, &claim.name).await?.row {
            None => return Ok(Renew::Lost(Loss::Gone)),
            Some(row) if !row.is_held_by(&claim.holder) => return Ok(Renew::Lost(row.loss(&claim.holder))),
            Some(row) if row.left_us >= ttl => return Ok(Renew::Renewed),
            Some(_) => {}
        }
    }
}

struct Renewing(Claim);

impl Task<Mysql> for Renewing {
    type Answer = Renew;

    fn subject(&self) -> Subject {
        Subject::of(Operation::Renew, &self.0.name)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Renew, Failure> {
        let subject = self.subject();
        renew(session, &subject, &self.0).await
    }
}

struct Releasing {
    claim: Claim,
    delete: bool,
    /// A statement of this very release was sent before, and may have been executed.
    tried: bool,
}

impl Task<Mysql> for Releasing {
    type Answer = Release;

    fn subject(&self) -> Subject {
        Subject::of(Operation::Release, &self.claim.name)
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Release, Failure> {
        let subject = self.subject();
        let in_doubt = std::mem::replace(&mut self.tried, true);
        let Claim { name, holder, .. } = &self.claim;
        let values = [
            Text(name.as_str()),
            Text(holder.as_str()),
            Int(span(self.claim.at_least_for)),
        ];
        let deleted = self.delete && session.execute(sql::Delete, &values).await? > 0;
        if deleted || session.execute(sql::Release, &values).await? > 0 {
            return Ok(Release::Released);
        }
        if in_doubt {
            let row = Seen::look(session, &subject, name).await?.row;
            if row.is_some_and(|row| row.released && row.holder == holder.as_str().as_bytes()) {
                return Ok(Release::Released);
            }
        }
        Ok(Release::NotHeld)
    }
}

//! Where connections come from, and that none goes back to a pool with an answer still under way.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use diesel_async::pooled_connection::deadpool::{Object, Pool};
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod};
use diesel_async::{AnsiTransactionManager, AsyncMysqlConnection, SimpleAsyncConnection, TransactionManager};
use lease_core::{RepoError, RepoErrorKind};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::error::{Subject, no_connection, text};
use crate::session::{CONNECT_LIMIT, Settings};
use crate::sql;
use crate::target::{Session, Target};
use crate::task::{Progress, Task, within};

/// Connections of a repo made by `connect`, unless it is told another number.
pub(crate) const POOL_SIZE: usize = 4;

/// Where connections come from.
pub(crate) enum Source {
    Own {
        settings: Arc<Settings>,
        pool: Pool<AsyncMysqlConnection>,
    },
    Foreign {
        pool: Pool<AsyncMysqlConnection>,
        home: Handle,
    },
}

impl Source {
    /// A pool of our own, empty until the first task.
    pub(crate) fn own(settings: Arc<Settings>, size: usize) -> Self {
        let mut config = ManagerConfig::default();
        // Without a round trip. It does not notice a connection that has died, so whoever meets one goes on to the next.
        config.recycling_method = RecyclingMethod::Fast;
        let opener = settings.clone();
        config.custom_setup = Box::new(move |_| {
            let settings = opener.clone();
            Box::pin(async move { settings.open().await.map_err(|failure| failure.into_diesel()) })
        });
        let pool = Pool::builder(AsyncDieselConnectionManager::new_with_config("", config))
            .max_size(size)
            .runtime(deadpool::Runtime::Tokio1)
            .create_timeout(Some(CONNECT_LIMIT))
            .recycle_timeout(Some(CONNECT_LIMIT))
            .build()
            .expect("a pool that was given a runtime can have time limits");
        Self::Own { settings, pool }
    }

    /// The same, with a pool of our own of another size. `None` for a pool that is not ours.
    pub(crate) fn sized(&self, size: usize) -> Option<Self> {
        match self {
            Self::Own { settings, .. } => Some(Self::own(settings.clone(), size)),
            Self::Foreign { .. } => None,
        }
    }

    /// Runs a task on a pooled connection.
    pub(crate) async fn run<T: Task>(&self, target: &Target, task: T, limit: Duration) -> Result<T::Answer, RepoError> {
        match self {
            Self::Own { pool, .. } => {
                let progress = Progress::default();
                let answer = within(limit, target, task, Door::Own(pool.clone()), &progress).await;
                if answer
                    .as_ref()
                    .is_err_and(|error| error.kind() == RepoErrorKind::Timeout)
                    && progress.was_sent()
                {
                    // One connection that hung, as after a failover, is a sign that its idle sisters would.
                    pool.retain(|_, _| false);
                }
                answer
            }
            Self::Foreign { .. } => self.run_alone(target, task, limit).await,
        }
    }

    /// Runs a task on a connection of its own on the caller's runtime, or on one from the application's pool.
    pub(crate) async fn run_alone<T: Task>(
        &self,
        target: &Target,
        task: T,
        limit: Duration,
    ) -> Result<T::Answer, RepoError> {
        match self {
            Self::Own { settings, .. } => {
                within(limit, target, task, Door::Open(settings.clone()), &Progress::default()).await
            }
            Self::Foreign { pool, home } => {
                at_home(home, limit, target.clone(), task, Door::Foreign(pool.clone())).await
            }
        }
    }
}

impl Clone for Source {
    fn clone(&self) -> Self {
        match self {
            Self::Own { settings, pool } => Self::own(settings.clone(), pool.status().max_size),
            Self::Foreign { pool, home } => Self::Foreign {
                pool: pool.clone(),
                home: home.clone(),
            },
        }
    }
}

impl fmt::Debug for Source {
    /// Without the URL: a mistyped one may have a piece of the password in any part.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, pool) = match self {
            Self::Own { pool, .. } => ("Own", pool),
            Self::Foreign { pool, .. } => ("Foreign", pool),
        };
        f.debug_tuple(kind).field(&pool.status()).finish()
    }
}

/// Runs a task as a task of the application's runtime, which drives its connections.
///
/// The limit holds there, so that the connection is not kept longer when our caller is slow; and here, so that our
/// caller gets an answer when that runtime is stuck.
async fn at_home<T: Task>(
    home: &Handle,
    limit: Duration,
    target: Target,
    task: T,
    door: Door,
) -> Result<T::Answer, RepoError> {
    let subject = task.subject();
    let progress = Arc::new(Progress::default());
    let there = progress.clone();
    let mut running = AbortOnDrop(home.spawn(async move { within(limit, &target, task, door, &there).await }));
    match timeout(limit, &mut running.0).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(ended)) => {
            let reason = if ended.is_panic() {
                "the task on the pool's runtime panicked"
            } else {
                "the runtime of the pool given to MysqlRepo has shut down"
            };
            let error = subject.error(RepoErrorKind::Unavailable).with_source(text(reason));
            Err(if progress.was_sent() {
                error
            } else {
                error.never_executed()
            })
        }
        Err(_) => Err(progress.out_of_time(&subject, limit)),
    }
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The way to one connection.
pub(crate) enum Door {
    Own(Pool<AsyncMysqlConnection>),
    Foreign(Pool<AsyncMysqlConnection>),
    Open(Arc<Settings>),
}

impl Door {
    pub(crate) async fn enter(&self, subject: &Subject) -> Result<Checkout, RepoError> {
        match self {
            Self::Own(pool) => Ok(Checkout::new(Connection::Pooled(out_of(pool, subject).await?))),
            Self::Foreign(pool) => loop {
                let checkout = Checkout::new(Connection::Pooled(out_of(pool, subject).await?));
                let used_before = checkout.was_used_before();
                match checkout.outside_a_transaction(subject)?.knowing_autocommit().await {
                    Ok(checkout) => return Ok(checkout),
                    // It has died in the pool. Another one may live, a fresh one does.
                    Err(_) if used_before => {}
                    Err(error) => {
                        let error = subject.error(RepoErrorKind::Unavailable).with_source(error);
                        return Err(error.never_executed());
                    }
                }
            },
            Self::Open(settings) => match settings.open().await {
                Ok(connection) => Ok(Checkout::new(Connection::Alone(Box::new(connection)))),
                Err(failure) => Err(failure.error(subject)),
            },
        }
    }
}

async fn out_of(
    pool: &Pool<AsyncMysqlConnection>,
    subject: &Subject,
) -> Result<Object<AsyncMysqlConnection>, RepoError> {
    pool.get().await.map_err(|error| no_connection(subject, error))
}

/// A connection in use. Dropped before it [ended in order](Self::ended_in_order), it never goes back to its pool.
pub(crate) struct Checkout {
    connection: Option<Connection>,
    commits_by_hand: bool,
}

enum Connection {
    Pooled(Object<AsyncMysqlConnection>),
    Alone(Box<AsyncMysqlConnection>),
}

const IN_USE: &str = "a connection is given back only by what consumes the checkout";

impl Checkout {
    fn new(connection: Connection) -> Self {
        Self {
            connection: Some(connection),
            commits_by_hand: false,
        }
    }

    /// Gives a pooled connection back: no answer is under way on it.
    pub(crate) fn ended_in_order(mut self) {
        drop(self.connection.take());
    }

    /// Whether it was in the pool, where it may have died unnoticed.
    pub(crate) fn was_used_before(&self) -> bool {
        matches!(&self.connection, Some(Connection::Pooled(object)) if Object::metrics(object).recycle_count > 0)
    }

    pub(crate) fn session<'a>(&'a mut self, target: &'a Target) -> Session<'a> {
        let commits_by_hand = self.commits_by_hand;
        Session {
            connection: self.connection(),
            target,
            commits_by_hand,
        }
    }

    fn connection(&mut self) -> &mut AsyncMysqlConnection {
        match self.connection.as_mut().expect(IN_USE) {
            Connection::Pooled(object) => object,
            Connection::Alone(connection) => connection,
        }
    }

    /// A connection that a foreign pool hands out inside a transaction would tie the lease to that one's fate.
    fn outside_a_transaction(mut self, subject: &Subject) -> Result<Self, RepoError> {
        let status = AnsiTransactionManager::transaction_manager_status_mut(self.connection());
        if matches!(status.transaction_depth(), Ok(None)) {
            return Ok(self);
        }
        self.ended_in_order();
        let reason = "the pool handed out a connection that is inside a transaction";
        Err(subject
            .error(RepoErrorKind::Config)
            .with_source(text(reason))
            .never_executed())
    }

    /// Finds out whether the session commits by itself. If not, whoever had it before may have left a transaction open,
    /// which is rolled back as nobody can commit it any more: else it would be committed with ours.
    async fn knowing_autocommit(mut self) -> diesel::QueryResult<Self> {
        let target = Target::default();
        let (autocommit,): (i64,) = sql::only(self.session(&target).rows(sql::Autocommit, &[]).await?)?;
        if autocommit == 0 {
            self.connection().batch_execute("ROLLBACK").await?;
            self.commits_by_hand = true;
        }
        Ok(self)
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        if let Some(Connection::Pooled(object)) = self.connection.take() {
            drop(Object::take(object));
        }
    }
}

//! Where connections come from, and that none goes back to a pool with an answer still under way.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use diesel_async::pooled_connection::deadpool::{Object, Pool};
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod};
use diesel_async::{AnsiTransactionManager, AsyncPgConnection, TransactionManager};
use lease_core::{RepoError, RepoErrorKind};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::error::{Subject, no_connection, text};
use crate::session::{CONNECT_LIMIT, Settings};
use crate::target::Target;
use crate::task::{Progress, Task, within};

/// Connections of a repo made by `connect`, unless it is told another number.
pub(crate) const POOL_SIZE: usize = 4;

/// Where connections come from.
pub(crate) enum Source {
    Own {
        settings: Arc<Settings>,
        pool: Pool<AsyncPgConnection>,
    },
    Foreign {
        pool: Pool<AsyncPgConnection>,
        home: Handle,
    },
}

impl Source {
    /// A pool of our own, empty until the first task.
    pub(crate) fn own(settings: Arc<Settings>, size: usize) -> Self {
        let mut config = ManagerConfig::default();
        // It checks that the connection is open, without a round trip.
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
                let answer = within(limit, target, task, Door::Pool(pool.clone()), &progress).await;
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
            Self::Foreign { pool, home } => at_home(home, limit, target.clone(), task, Door::Pool(pool.clone())).await,
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
                "the runtime of the pool given to PostgresRepo has shut down"
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
    Pool(Pool<AsyncPgConnection>),
    Open(Arc<Settings>),
}

impl Door {
    pub(crate) async fn enter(&self, subject: &Subject) -> Result<Checkout, RepoError> {
        match self {
            Self::Pool(pool) => {
                let object = pool.get().await.map_err(|error| no_connection(subject, error))?;
                Checkout(Some(Connection::Pooled(object))).outside_a_transaction(subject)
            }
            Self::Open(settings) => match settings.open().await {
                Ok(connection) => Ok(Checkout(Some(Connection::Alone(connection)))),
                Err(failure) => Err(failure.error(subject)),
            },
        }
    }
}

/// A connection in use. Dropped before it [ended in order](Self::ended_in_order), it never goes back to its pool.
pub(crate) struct Checkout(Option<Connection>);

enum Connection {
    Pooled(Object<AsyncPgConnection>),
    Alone(AsyncPgConnection),
}

impl Checkout {
    /// Gives a pooled connection back: no answer is under way on it.
    pub(crate) fn ended_in_order(mut self) {
        drop(self.0.take());
    }

    /// A connection that a foreign pool hands out inside a transaction would tie the lease to that one's fate.
    fn outside_a_transaction(mut self, subject: &Subject) -> Result<Self, RepoError> {
        let status = AnsiTransactionManager::transaction_manager_status_mut(&mut *self);
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
}

impl Drop for Checkout {
    fn drop(&mut self) {
        if let Some(Connection::Pooled(object)) = self.0.take() {
            drop(Object::take(object));
        }
    }
}

const IN_USE: &str = "a connection is given back only by what consumes the checkout";

impl Deref for Checkout {
    type Target = AsyncPgConnection;

    fn deref(&self) -> &AsyncPgConnection {
        match self.0.as_ref().expect(IN_USE) {
            Connection::Pooled(object) => object,
            Connection::Alone(connection) => connection,
        }
    }
}

impl DerefMut for Checkout {
    fn deref_mut(&mut self) -> &mut AsyncPgConnection {
        match self.0.as_mut().expect(IN_USE) {
            Connection::Pooled(object) => object,
            Connection::Alone(connection) => connection,
        }
    }
}

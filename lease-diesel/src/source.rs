//! [`Source`]: where connections come from, and on which runtime a task runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deadpool::managed::Pool;
use lease_core::{Operation, RepoError, RepoErrorKind};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::checkout::{Door, Opener};
use crate::error::text;
use crate::task::{Progress, Task, within};
use crate::{CONNECT_LIMIT, Engine};

/// Connections of a pool of our own, unless it is told another number.
pub const POOL_SIZE: usize = 4;

/// Where connections come from. A clone with a pool of our own has another pool of the same size.
///
/// Its `Debug` does not show the settings: a mistyped URL may have a piece of the password in any part.
pub struct Source<E: Engine>(Kind<E>);

enum Kind<E: Engine> {
    Own {
        settings: Arc<E::Settings>,
        pool: Pool<Opener<E>>,
    },
    Foreign {
        pool: Pool<E::Manager>,
        home: Handle,
    },
}

impl<E: Engine> Source<E> {
    /// A pool of our own, empty until the first task.
    #[must_use]
    pub fn own(settings: Arc<E::Settings>) -> Self {
        Self::with_size(settings, POOL_SIZE)
    }

    /// How to open a connection of our own. `None` where the pool is the application's.
    #[must_use]
    pub const fn settings(&self) -> Option<&Arc<E::Settings>> {
        match &self.0 {
            Kind::Own { settings, .. } => Some(settings),
            Kind::Foreign { .. } => None,
        }
    }

    /// The application's pool, whose connections are driven by the current runtime.
    ///
    /// # Errors
    /// `Config` outside a tokio runtime.
    pub fn here(pool: Pool<E::Manager>) -> Result<Self, RepoError> {
        match Handle::try_current() {
            Ok(home) => Ok(Self::foreign(pool, home)),
            Err(error) => Err(RepoError::new(RepoErrorKind::Config, Operation::Connect)
                .with_source(error)
                .never_executed()),
        }
    }

    /// The application's pool, whose connections are driven by the runtime of `home`.
    #[must_use]
    pub fn foreign(pool: Pool<E::Manager>, home: Handle) -> Self {
        Self(Kind::Foreign { pool, home })
    }

    /// The same, with a pool of our own of another size.
    ///
    /// # Errors
    /// `Config` for zero, and for a pool that is the application's.
    pub fn sized(&self, size: usize) -> Result<Self, RepoError> {
        let refused = |why: &str| {
            let error = RepoError::new(RepoErrorKind::Config, Operation::Connect);
            Err(error.with_source(text(why)).never_executed())
        };
        match &self.0 {
            _ if size == 0 => refused("a repo without connections can do nothing"),
            Kind::Own { settings, .. } => Ok(Self::with_size(settings.clone(), size)),
            Kind::Foreign { .. } => refused("the pool is the application's, and has its size from there"),
        }
    }

    /// Runs a task on a pooled connection, to its end or its limit.
    ///
    /// # Errors
    /// What the task failed with; `Timeout` when the limit ran out, unless the task had been refused by then; and whatever kept
    /// it from a connection.
    ///
    /// # Cancelling
    /// The connection does not go back to its pool, and whether the task was executed is open.
    pub async fn run<T: Task<E>>(&self, target: &E::Target, task: T, limit: Duration) -> Result<T::Answer, RepoError> {
        let Kind::Own { pool, .. } = &self.0 else {
            return self.run_alone(target, task, limit).await;
        };
        let progress = Progress::default();
        let answer = within(limit, target, task, Door::Own(pool.clone()), &progress).await;
        let timed_out = answer
            .as_ref()
            .is_err_and(|error| error.kind() == RepoErrorKind::Timeout);
        if timed_out && progress.was_sent() {
            // One connection that hung, as after a failover, is a sign that its idle sisters would.
            pool.retain(|_, _| false);
        }
        answer
    }

    /// As [`run`](Self::run), on a connection of its own on the caller's runtime, or on one from the application's pool.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_alone<T: Task<E>>(
        &self,
        target: &E::Target,
        task: T,
        limit: Duration,
    ) -> Result<T::Answer, RepoError> {
        match &self.0 {
            Kind::Own { settings, .. } => {
                within(limit, target, task, Door::Open(settings.clone()), &Progress::default()).await
            }
            Kind::Foreign { pool, home } => {
                at_home(home, limit, target.clone(), task, Door::Foreign(pool.clone())).await
            }
        }
    }

    fn with_size(settings: Arc<E::Settings>, size: usize) -> Self {
        let pool = Pool::builder(Opener(settings.clone()))
            .max_size(size)
            .runtime(deadpool::Runtime::Tokio1)
            .create_timeout(Some(CONNECT_LIMIT))
            .build()
            .expect("a pool that was given a runtime can have time limits");
        Self(Kind::Own { settings, pool })
    }
}

impl<E: Engine> Clone for Source<E> {
    fn clone(&self) -> Self {
        match &self.0 {
            Kind::Own { settings, pool } => Self::with_size(settings.clone(), pool.status().max_size),
            Kind::Foreign { pool, home } => Self::foreign(pool.clone(), home.clone()),
        }
    }
}

impl<E: Engine> fmt::Debug for Source<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, status) = match &self.0 {
            Kind::Own { pool, .. } => ("Own", pool.status()),
            Kind::Foreign { pool, .. } => ("Foreign", pool.status()),
        };
        f.debug_tuple(kind).field(&status).finish()
    }
}

/// Runs a task as a task of the application's runtime, which drives its connections.
///
/// The limit holds there, so that the connection is not kept longer when our caller is slow; and here, so that our
/// caller gets an answer when that runtime is stuck.
async fn at_home<E: Engine, T: Task<E>>(
    home: &Handle,
    limit: Duration,
    target: E::Target,
    task: T,
    door: Door<E>,
) -> Result<T::Answer, RepoError> {
    let subject = task.subject();
    let progress = Arc::new(Progress::default());
    let there = progress.clone();
    let mut running = AbortOnDrop(home.spawn(async move { within(limit, &target, task, door, &there).await }));
    match timeout(limit, &mut running.0).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(ended)) => {
            let reason = if ended.is_panic() {
                "the task on the pool's runtime panicked".to_owned()
            } else {
                format!("the runtime of the pool given to {} has shut down", E::REPO)
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

//! One task on one connection: to its end or its limit, again after a conflict, explained when it failed.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lease_core::{RepoError, RepoErrorKind};
use tokio::time::timeout;

use crate::checkout::{Checkout, Door};
use crate::error::text;
use crate::{Engine, Failure, Session, Subject, Verdict};

/// How often a statement is tried in all that the server refused for no reason we know.
const UNEXPLAINED_TRIES: u32 = 3;
/// The longest pause between two tries.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// Something to do on one connection.
pub trait Task<E: Engine>: Send + 'static {
    /// What comes of it.
    type Answer: Send + 'static;

    /// What errors say it was.
    fn subject(&self) -> Subject;

    /// Does it once. It is called again after a conflict, and on another connection when one turned out to be dead: then
    /// it may have been done already.
    fn attempt(&mut self, session: &mut Session<'_, E>) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

/// Runs a task to its end or its limit.
pub(crate) async fn within<E: Engine, T: Task<E>>(
    limit: Duration,
    target: &E::Target,
    task: T,
    door: Door<E>,
    progress: &Progress,
) -> Result<T::Answer, RepoError> {
    let subject = task.subject();
    timeout(limit, run(target, task, door, &subject, progress))
        .await
        .unwrap_or_else(|_| Err(progress.out_of_time(&subject, limit)))
}

async fn run<E: Engine, T: Task<E>>(
    target: &E::Target,
    mut task: T,
    door: Door<E>,
    subject: &Subject,
    progress: &Progress,
) -> Result<T::Answer, RepoError> {
    let mut connection = door.enter(subject).await?;
    let mut tries = 0;
    // Whether a session ended with a statement in it, which may have been executed: then no later error says that it wasn't.
    let mut in_doubt = false;
    loop {
        progress.set(Phase::Sent);
        let mut session = connection.session(target);
        let error = match task.attempt(&mut session).await {
            Ok(answer) => {
                connection.ended_in_order();
                return Ok(answer);
            }
            Err(Failure::Decided(error)) => {
                give_back(connection, &error);
                return Err(doubted(subject, in_doubt, error));
            }
            Err(Failure::Driver(error)) => error,
        };
        tries += 1;
        match E::explain(&mut session, subject, error).await {
            Verdict::Conflict(error) => progress.set(Phase::Failed(doubted(subject, in_doubt, error))),
            Verdict::Unexplained(error) if tries < UNEXPLAINED_TRIES => {
                progress.set(Phase::Failed(doubted(subject, in_doubt, error)));
            }
            Verdict::Unexplained(error) => {
                connection.ended_in_order();
                return Err(doubted(subject, in_doubt, error));
            }
            Verdict::Gone(error) => {
                // The pool did not notice that an idle connection had died. Another one may live, a fresh one does.
                if !connection.was_used_before() {
                    return Err(error);
                }
                drop(connection);
                in_doubt = true;
                progress.set(Phase::Failed(error.clone()));
                connection = match door.enter(subject).await {
                    Ok(connection) => connection,
                    Err(_) => return Err(error),
                };
                continue;
            }
            Verdict::Final(error) => {
                // Unless the server answered, the session may be gone.
                if !error.may_have_executed() {
                    give_back(connection, &error);
                }
                return Err(doubted(subject, in_doubt, error));
            }
        }
        if tries > 1 {
            pause(Duration::from_millis(1 << tries.min(6)).min(MAX_PAUSE)).await;
        }
    }
}

/// Gives a sound connection back, unless it is to a server that is of no use: one that is read-only, or not part of its
/// cluster.
fn give_back<E: Engine>(connection: Checkout<E>, error: &RepoError) {
    if !matches!(error.kind(), RepoErrorKind::ReadOnly | RepoErrorKind::Unavailable) {
        connection.ended_in_order();
    }
}

/// An error that does not say of the statement what it can't know.
fn doubted(subject: &Subject, in_doubt: bool, error: RepoError) -> RepoError {
    if in_doubt && !error.may_have_executed() {
        subject.error(error.kind()).with_source(error)
    } else {
        error
    }
}

/// Waits between half of `longest` and all of it, at random so that those who met don't meet again.
#[expect(
    clippy::disallowed_methods,
    reason = "a pause between two tries inside one operation, whose limit bounds it; no lease's time hangs on it"
)]
pub async fn pause(longest: Duration) {
    let random = u32::try_from(RandomState::new().hash_one(()) % 500).unwrap_or(0);
    tokio::time::sleep(longest * (500 + random) / 1_000).await;
}

/// How far a task got, for the error when its limit runs out.
#[derive(Default)]
pub(crate) struct Progress(Mutex<Phase>);

#[derive(Default)]
enum Phase {
    /// Waiting for a connection.
    #[default]
    Waiting,
    /// A statement is under way.
    Sent,
    /// The statement failed, and it is about to be tried again.
    Failed(RepoError),
}

impl Progress {
    fn set(&self, phase: Phase) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    pub(crate) fn was_sent(&self) -> bool {
        matches!(*self.0.lock().unwrap_or_else(PoisonError::into_inner), Phase::Sent)
    }

    pub(crate) fn out_of_time(&self, subject: &Subject, limit: Duration) -> RepoError {
        let late = |what: &str| {
            let reason = format!("{what} within {limit:?}");
            subject.error(RepoErrorKind::Timeout).with_source(text(reason))
        };
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Phase::Waiting => late("no connection was to be had").never_executed(),
            Phase::Sent => late("the server did not answer"),
            Phase::Failed(error) => error.clone(),
        }
    }
}

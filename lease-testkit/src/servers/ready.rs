//! When a server can be used: once it answers a statement, whatever its log says.

use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ServerError;
use super::admin::Admin;
use super::blocking::Patience;
use super::instance::Instance;

/// How long a server of ours may take until it answers.
const OWN_LIMIT: Duration = Duration::from_secs(60);

/// How long a server whose URL was given may take: it is expected to be up.
const GIVEN_LIMIT: Duration = Duration::from_secs(10);

/// How long one attempt may take.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(5);

/// Waits until the server answers; ends early with its log if it can't any more.
pub(super) fn wait(admin: &impl Admin, instance: Option<&Mutex<Box<dyn Instance>>>) -> Result<(), ServerError> {
    let patience = Patience::new(if instance.is_some() { OWN_LIMIT } else { GIVEN_LIMIT });
    loop {
        let attempt = admin.sql(admin.probe(), "answer", ATTEMPT_LIMIT);
        let Err(error) = attempt else { return Ok(()) };
        let ended = instance.and_then(|instance| lock(instance).ended());
        if ended.is_none() && may_pass(admin, &error) && patience.wait() {
            continue;
        }
        let reason = ended.map_or_else(|| with_causes(&error), |how| format!("it ended ({how})"));
        let log = instance.map_or("(not ours to read)".into(), |instance| lock(instance).log());
        let engine = admin.engine();
        return Err(ServerError::NotReady { engine, reason, log });
    }
}

/// An instance is in order between its calls, also after a test panicked in one.
pub(super) fn lock(instance: &Mutex<Box<dyn Instance>>) -> MutexGuard<'_, Box<dyn Instance>> {
    instance.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an error is one of a server that is still starting. A wrong password, for one, stays wrong.
fn may_pass(admin: &impl Admin, error: &ServerError) -> bool {
    match error {
        ServerError::Sql { source, .. } => admin.may_pass(source.as_ref()),
        other => matches!(other, ServerError::TimedOut { .. }),
    }
}

/// The driver's own text is only "db error"; what the server said is a cause of it.
fn with_causes(error: &ServerError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

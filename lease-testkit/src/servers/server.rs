use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::admin::Admin;
use super::instance::Instance;
use super::{ServerError, Source, ports, ready};

/// How long one statement of ours may take.
pub(super) const SQL_LIMIT: Duration = Duration::from_secs(10);

/// What a server logs, of whatever engine, when it finds its port taken.
const PORT_TAKEN: &str = "Address already in use";

/// A server of any engine that answers: ours, or one that was given by URL.
///
/// Dropping it ends a server that is ours.
#[derive(Debug)]
pub(super) struct Server<A> {
    pub(super) url: String,
    pub(super) admin: A,
    instance: Option<Mutex<Box<dyn Instance>>>,
}

impl<A: Admin> Server<A> {
    /// One that is there already.
    pub(super) fn given(url: &str, admin: A) -> Result<Self, ServerError> {
        ready::wait(&admin, None)?;
        Ok(Self {
            url: url.to_owned(),
            admin,
            instance: None,
        })
    }

    /// One of ours, which is started here.
    pub(super) fn started(url: String, admin: A, instance: Box<dyn Instance>) -> Result<Self, ServerError> {
        let server = Self {
            url,
            admin,
            instance: Some(Mutex::new(instance)),
        };
        server.start()?;
        Ok(server)
    }

    pub(super) fn start(&self) -> Result<(), ServerError> {
        self.instance("start")?.start()?;
        self.wait()
    }

    /// Waits until it answers.
    pub(super) fn wait(&self) -> Result<(), ServerError> {
        ready::wait(&self.admin, self.instance.as_ref())
    }

    pub(super) fn stop(&self) -> Result<(), ServerError> {
        self.instance("stop")?.stop()
    }

    pub(super) fn kill(&self) -> Result<(), ServerError> {
        self.instance("kill")?.kill()
    }

    pub(super) fn pause(&self) -> Result<(), ServerError> {
        self.instance("pause")?.pause()
    }

    pub(super) fn resume(&self) -> Result<(), ServerError> {
        self.instance("resume")?.resume()
    }

    pub(super) fn sql(&self, text: &str) -> Result<Vec<String>, ServerError> {
        self.admin.sql(text, "run a statement", SQL_LIMIT)
    }

    pub(super) fn instance(&self, step: &'static str) -> Result<MutexGuard<'_, Box<dyn Instance>>, ServerError> {
        let instance = self.instance.as_ref().ok_or(ServerError::NotOurs { step })?;
        Ok(ready::lock(instance))
    }
}

/// Runs a server on a port of its own, from the first source in `order` that this machine has and `wanted` allows.
pub(super) fn first_of<T>(
    engine: &'static str,
    wanted: Source,
    order: [Source; 2],
    run: impl Fn(Source, u16) -> Result<T, ServerError>,
) -> Result<T, ServerError> {
    let mut tried = Vec::new();
    for source in order {
        if wanted != Source::Any && wanted != source {
            continue;
        }
        match on_free_port(|port| run(source, port)) {
            Ok(server) => return Ok(server),
            Err(ServerError::Missing { looked_for, .. }) => tried.push(looked_for),
            Err(error @ ServerError::Docker { .. }) if wanted == Source::Any => tried.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Err(ServerError::Missing {
        engine,
        looked_for: tried.join("; "),
    })
}

fn on_free_port<T>(run: impl Fn(u16) -> Result<T, ServerError>) -> Result<T, ServerError> {
    let mut tries = 1;
    loop {
        match run(ports::free()?) {
            // Another process took the port between the look and the start.
            Err(ServerError::NotReady { log, .. }) if tries < 4 && log.contains(PORT_TAKEN) => tries += 1,
            other => return other,
        }
    }
}

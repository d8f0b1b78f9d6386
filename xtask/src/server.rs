//! The servers of a run: one for each engine, ours until the run is over.

use std::env;

use anyhow::Context;
use lease_testkit::servers::{POSTGRES_URL, Postgres, ServerError, Settings, Source};

use crate::images;
use crate::machine::Machine;
use crate::report::note;

/// The server for the tests of PostgreSQL, which ends when it is dropped, and if we are killed.
///
/// In this order: the one that the environment names; one in a container, its image built here if it is neither there
/// nor to be pulled; one from programs installed here.
///
/// # Errors
///
/// The named server does not answer, or there is nothing to run one with.
pub(crate) fn postgres(machine: &Machine) -> anyhow::Result<Postgres> {
    // Wanted in any case, for the tests of containers need its image.
    let contained = if machine.docker { contained(machine) } else { None };
    if let Ok(url) = env::var(POSTGRES_URL) {
        return Postgres::at(&url).with_context(|| format!("the server that {POSTGRES_URL} names"));
    }
    if let Some(server) = contained {
        note("PostgreSQL runs in a container");
        return Ok(server);
    }
    let server = start(Source::Local)
        .with_context(|| format!("name a server by {POSTGRES_URL}, start a Docker engine, or use --install as root"))?;
    note("PostgreSQL runs from the programs installed here");
    Ok(server)
}

fn contained(machine: &Machine) -> Option<Postgres> {
    let first = start(Source::Container);
    let result = match first {
        Err(ServerError::Missing { .. }) if machine.debootstrap.is_some() => {
            note("no image of PostgreSQL is there or can be pulled: building one from Debian's packages");
            let built = images::postgres().and_then(|image| images::ensure(&[image]));
            built.and_then(|_| Ok(start(Source::Container)?))
        }
        first => first.map_err(anyhow::Error::from),
    };
    result
        .inspect_err(|error| note(format_args!("no server in a container: {error:#}")))
        .ok()
}

/// Whether tests can have PgBouncer, whose image is built here if it is not there.
pub(crate) fn pgbouncer(machine: &Machine) -> bool {
    machine.docker
        && images::ensure(&[images::pgbouncer()])
            .inspect_err(|error| note(format_args!("no image of PgBouncer: {error:#}")))
            .is_ok()
}

fn start(source: Source) -> Result<Postgres, ServerError> {
    Postgres::private(&Settings::default().source(source))
}

//! The servers of a run: one for each engine, ours until the run is over.

use std::env;

use anyhow::Context;
use lease_testkit::servers::{
    Dialect, MARIADB_URL, MYSQL_URL, Mysql, POSTGRES_URL, Postgres, ServerError, Settings, Source,
};

use crate::images::{self, Wanted};
use crate::machine::Machine;
use crate::report::note;

/// A server of a run, which ends when it is dropped, and if we are killed.
#[derive(Debug)]
pub(crate) enum Server {
    Postgres(Postgres),
    Mysql(Mysql),
}

impl Server {
    /// The URL of its superuser.
    pub(crate) fn url(&self) -> &str {
        match self {
            Self::Postgres(server) => server.url(),
            Self::Mysql(server) => server.url(),
        }
    }

    /// The variable that tells the tests its URL.
    pub(crate) fn variable(&self) -> &'static str {
        match self {
            Self::Postgres(_) => POSTGRES_URL,
            Self::Mysql(server) => variable(server.dialect()),
        }
    }
}

/// The server for the tests of PostgreSQL.
///
/// In this order: the one that the environment names; one in a container, its image built here if it is neither there
/// nor to be pulled; one from programs installed here.
///
/// # Errors
///
/// The named server does not answer, or there is nothing to run one with.
pub(crate) fn postgres(machine: &Machine) -> anyhow::Result<Server> {
    let engine = Engine {
        name: "PostgreSQL",
        variable: POSTGRES_URL,
        at: &Postgres::at,
        start: &|source| Postgres::private(&Settings::default().source(source)),
        image: &images::postgres,
    };
    engine.server(machine).map(Server::Postgres)
}

/// The server for the tests of MySQL or MariaDB, found as one of [`postgres`] is.
///
/// # Errors
///
/// As [`postgres`].
pub(crate) fn mysql(dialect: Dialect, machine: &Machine) -> anyhow::Result<Server> {
    let engine = Engine {
        name: dialect.name(),
        variable: variable(dialect),
        at: &|url| Mysql::at(dialect, url),
        start: &|source| Mysql::private(dialect, &Settings::default().source(source)),
        image: &|| images::mysql(dialect),
    };
    engine.server(machine).map(Server::Mysql)
}

/// Whether tests can have MySQL, which no programs of a machine are used for: a container, or a server by URL.
pub(crate) fn has_mysql(machine: &Machine) -> bool {
    machine.docker || env::var_os(MYSQL_URL).is_some()
}

/// Whether tests can have PgBouncer, whose image is built here if it is not there.
pub(crate) fn pgbouncer(machine: &Machine) -> bool {
    built(machine, "PgBouncer", || Ok(images::pgbouncer()))
}

/// As [`pgbouncer`], for clusters of MariaDB, which the official image is not used for.
pub(crate) fn galera(machine: &Machine) -> bool {
    built(machine, "Galera", || images::mysql(Dialect::MariaDb))
}

fn built(machine: &Machine, name: &str, image: impl Fn() -> anyhow::Result<Wanted>) -> bool {
    machine.docker
        && image()
            .and_then(|image| images::ensure(&[image]))
            .inspect_err(|error| note(format_args!("no image of {name}: {error:#}")))
            .is_ok()
}

fn variable(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MariaDb => MARIADB_URL,
        _ => MYSQL_URL,
    }
}

/// How servers of one engine are had.
struct Engine<'a, S> {
    name: &'static str,
    variable: &'static str,
    at: &'a dyn Fn(&str) -> Result<S, ServerError>,
    start: &'a dyn Fn(Source) -> Result<S, ServerError>,
    image: &'a dyn Fn() -> anyhow::Result<Wanted>,
}

impl<S> Engine<'_, S> {
    fn server(&self, machine: &Machine) -> anyhow::Result<S> {
        let Self { name, variable, .. } = self;
        // Wanted in any case, for the tests of containers need its image.
        let contained = if machine.docker { self.contained(machine) } else { None };
        if let Ok(url) = env::var(variable) {
            return (self.at)(&url).with_context(|| format!("the server that {variable} names"));
        }
        if let Some(server) = contained {
            note(format_args!("{name} runs in a container"));
            return Ok(server);
        }
        let server = (self.start)(Source::Local)
            .with_context(|| format!("name a server by {variable}, start a Docker engine, or use --install as root"))?;
        note(format_args!("{name} runs from the programs installed here"));
        Ok(server)
    }

    fn contained(&self, machine: &Machine) -> Option<S> {
        let start = || (self.start)(Source::Container);
        let result = match start() {
            Err(ServerError::Missing { .. }) if machine.debootstrap.is_some() => {
                note(format_args!(
                    "no image of {} is there or can be pulled: building one from Debian's packages",
                    self.name
                ));
                let built = (self.image)().and_then(|image| images::ensure(&[image]));
                built.and_then(|_| Ok(start()?))
            }
            first => first.map_err(anyhow::Error::from),
        };
        result
            .inspect_err(|error| note(format_args!("no server in a container: {error:#}")))
            .ok()
    }
}

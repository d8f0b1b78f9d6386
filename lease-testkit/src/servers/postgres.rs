use std::env;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use tokio_postgres::Config;

use super::blocking::{self, Patience};
use super::container::Container;
use super::instance::Instance;
use super::local::Local;
use super::{Database, ServerError, Settings, Source, ports, ready};

/// The environment variable that names a server to use: the URL of a superuser, without a database that matters.
pub const POSTGRES_URL: &str = "LEASE_TEST_POSTGRES_URL";

/// How long one attempt to connect, or one statement of ours, may take.
const SQL_LIMIT: Duration = Duration::from_secs(10);

/// What a server logs when it finds its port taken.
const PORT_TAKEN: &str = "could not create any TCP/IP sockets";

/// A PostgreSQL server for tests.
///
/// Dropping it ends a server that was started here, and removes all that was its own.
#[derive(Debug)]
pub struct Postgres {
    url: String,
    pub(super) admin: Config,
    instance: Option<Mutex<Box<dyn Instance>>>,
}

impl Postgres {
    /// The one server of this process, found or started by the first call; see the [module](super) for the order.
    ///
    /// # Errors
    /// [`ServerError::Missing`] where there is none; whatever failed the first time fails at once the next times.
    pub fn shared() -> Result<&'static Self, ServerError> {
        static SHARED: OnceLock<Result<Postgres, ServerError>> = OnceLock::new();
        let found = SHARED.get_or_init(|| match env::var(POSTGRES_URL) {
            Ok(url) => Self::at(&url),
            Err(_) => Self::first_of(&Settings::default(), &[Source::Container, Source::Local]),
        });
        found.as_ref().map_err(Clone::clone)
    }

    /// A server of one test's own. Server programs of this machine are preferred, for they start sooner.
    ///
    /// # Errors
    /// [`ServerError::Missing`] where there is nothing to run one with, [`ServerError::NotReady`] if it does not come up
    /// within 60 seconds, and any other error of the steps between.
    pub fn private(settings: &Settings) -> Result<Self, ServerError> {
        Self::first_of(settings, &[Source::Local, Source::Container])
    }

    /// The server with this superuser's URL, which stays what it is: it can't be stopped or paused from here.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the URL can't be understood, [`ServerError::NotReady`] if no server answers at it.
    pub fn at(url: &str) -> Result<Self, ServerError> {
        let server = Self {
            url: url.to_owned(),
            admin: admin(url)?,
            instance: None,
        };
        ready::wait(&server.admin, None)?;
        Ok(server)
    }

    /// The URL of a superuser and the database `postgres`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A new private database with a random name, for one test case.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the server refuses, [`ServerError::TimedOut`] if it does not answer within 60 seconds.
    pub fn database(&self) -> Result<Database, ServerError> {
        Database::create(self.admin.clone(), &self.url)
    }

    /// Starts a stopped or killed server again, on the same port, and waits until it answers.
    ///
    /// # Errors
    /// [`ServerError::NotReady`] if it does not answer within 60 seconds; [`ServerError::NotOurs`].
    pub fn start(&self) -> Result<(), ServerError> {
        self.instance("start")?.start()?;
        ready::wait(&self.admin, self.instance.as_ref())
    }

    /// Makes this server a streaming standby of `primary`, whose data replace its own, and waits until it answers.
    ///
    /// Both must come from this machine's programs and have the same [`password`](Settings::password). Once `primary` is
    /// gone, [`promote`](Self::promote) makes this one the primary.
    ///
    /// # Errors
    /// [`ServerError::Program`] if `primary` can't be copied, [`ServerError::Docker`] for a server in a container; and those of
    /// [`start`](Self::start).
    pub fn follow(&self, primary: &Self) -> Result<(), ServerError> {
        self.instance("make a standby of")?.follow(&primary.url)?;
        self.start()
    }

    /// Lets a standby take over: when this returns, it takes writes.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if it is no standby, [`ServerError::TimedOut`] if it takes longer than ten seconds.
    pub fn promote(&self) -> Result<(), ServerError> {
        self.sql("SELECT pg_promote()").map(drop)
    }

    /// Stops the server in order: its sessions are ended and everything is written to disk.
    ///
    /// # Errors
    /// [`ServerError::TimedOut`] if it has not ended within 60 seconds, as when it is paused; [`ServerError::NotOurs`].
    pub fn stop(&self) -> Result<(), ServerError> {
        self.instance("stop")?.stop()
    }

    /// Kills all processes of the server at once, as a loss of power does.
    ///
    /// What was committed is there after [`start`](Self::start), for the machine's memory of the files was not lost.
    ///
    /// # Errors
    /// [`ServerError::Io`] or [`ServerError::Docker`] if the system refuses; [`ServerError::NotOurs`].
    pub fn kill(&self) -> Result<(), ServerError> {
        self.instance("kill")?.kill()
    }

    /// Freezes all processes of the server: connections stay open and nothing answers.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn pause(&self) -> Result<(), ServerError> {
        self.instance("pause")?.pause()
    }

    /// Lets a paused server go on, with what it was doing.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn resume(&self) -> Result<(), ServerError> {
        self.instance("resume")?.resume()
    }

    /// Freezes one session, by a process id from [`Database::backend_pids`]; all others go on.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn pause_backend(&self, pid: i32) -> Result<(), ServerError> {
        self.instance("pause a session of")?.freeze_backend(pid, true)
    }

    /// Lets a frozen session go on.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn resume_backend(&self, pid: i32) -> Result<(), ServerError> {
        self.instance("resume a session of")?.freeze_backend(pid, false)
    }

    /// Changes a setting of the whole server, such as `default_transaction_read_only` to `on`, without a restart.
    ///
    /// When this returns, new sessions have the value; open sessions take it up before their next statement. A setting
    /// that needs a restart is changed by the next [`start`](Self::start).
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the server knows no such setting or value, [`ServerError::TimedOut`] if it is silent.
    pub fn set(&self, setting: &str, value: &str) -> Result<(), ServerError> {
        let setting = setting.replace('"', "\"\"");
        let value = value.replace('\'', "''");
        self.alter(format!("ALTER SYSTEM SET \"{setting}\" = '{value}'"))
    }

    /// Takes back what [`set`](Self::set) changed.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn reset(&self, setting: &str) -> Result<(), ServerError> {
        let setting = setting.replace('"', "\"\"");
        self.alter(format!("ALTER SYSTEM RESET \"{setting}\""))
    }

    /// Runs SQL text as a superuser on a connection of its own, and returns the first column of its rows.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the server refuses a statement, [`ServerError::TimedOut`] after ten seconds.
    pub fn sql(&self, text: &str) -> Result<Vec<String>, ServerError> {
        blocking::sql(self.admin.clone(), text.to_owned(), "run a statement", SQL_LIMIT)
    }

    fn first_of(settings: &Settings, order: &[Source]) -> Result<Self, ServerError> {
        let mut tried = Vec::new();
        for &source in order
            .iter()
            .filter(|&&source| matches!(settings.source, Source::Any) || settings.source == source)
        {
            match Self::run(settings, source) {
                Ok(server) => return Ok(server),
                Err(ServerError::Missing { looked_for }) => tried.push(looked_for),
                Err(error @ ServerError::Docker { .. }) if settings.source == Source::Any => {
                    tried.push(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Err(ServerError::Missing {
            looked_for: tried.join("; "),
        })
    }

    fn run(settings: &Settings, source: Source) -> Result<Self, ServerError> {
        let mut tries = 1;
        loop {
            match Self::run_once(settings, source) {
                // Another process took the port between the look and the start.
                Err(ServerError::NotReady { log, .. }) if tries < 4 && log.contains(PORT_TAKEN) => tries += 1,
                other => return other,
            }
        }
    }

    fn run_once(settings: &Settings, source: Source) -> Result<Self, ServerError> {
        let random = || format!("{:032x}", rand::random::<u128>());
        let password = settings.password.clone().unwrap_or_else(random);
        let port = ports::free()?;
        let instance: Box<dyn Instance> = match source {
            Source::Container => Box::new(Container::create(settings, &password, port)?),
            Source::Local | Source::Any => Box::new(Local::create(settings, &password, port)?),
        };
        let url = format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres");
        let server = Self {
            admin: admin(&url)?,
            url,
            instance: Some(Mutex::new(instance)),
        };
        server.start()?;
        Ok(server)
    }

    fn instance(&self, step: &'static str) -> Result<MutexGuard<'_, Box<dyn Instance>>, ServerError> {
        let instance = self.instance.as_ref().ok_or(ServerError::NotOurs { step })?;
        Ok(ready::lock(instance))
    }

    fn alter(&self, statement: String) -> Result<(), ServerError> {
        let loaded = "SELECT pg_conf_load_time()";
        let before = self.sql(loaded)?;
        // Not in one text with the reload: ALTER SYSTEM refuses to run inside of a transaction.
        self.sql(&statement)?;
        self.sql("SELECT pg_reload_conf()")?;
        let patience = Patience::new(SQL_LIMIT);
        while self.sql(loaded)? == before {
            if !patience.wait() {
                return Err(ServerError::TimedOut {
                    step: "read its settings again",
                    seconds: SQL_LIMIT.as_secs(),
                });
            }
        }
        Ok(())
    }
}

/// How we connect ourselves, also to a server that a test has made read-only.
fn admin(url: &str) -> Result<Config, ServerError> {
    let parsed: Result<Config, _> = url.parse();
    let mut config = parsed.map_err(|source| ServerError::Sql {
        step: "understand the URL",
        source: source.into(),
    })?;
    config
        .options("-c default_transaction_read_only=off")
        .application_name("lease-testkit");
    Ok(config)
}

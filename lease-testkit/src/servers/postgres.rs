mod admin;
mod database;
mod pooler;
mod programs;
mod recipe;

use std::env;
use std::sync::OnceLock;

use testcontainers::ImageExt;
use tokio_postgres::Config;

use super::blocking::Patience;
use super::container::{self, Container};
use super::image::{self, Image};
use super::instance::Instance;
use super::local::Local;
use super::server::{self, SQL_LIMIT, Server};
use super::{ServerError, Settings, Source};
use admin::admin;
pub use database::Database;
pub use pooler::Pooler;
use recipe::PostgresRecipe;

/// The environment variable that names a server to use: the URL of a superuser, without a database that matters.
pub const POSTGRES_URL: &str = "LEASE_TEST_POSTGRES_URL";

/// The environment variable that names the major version of the servers to run, such as `18`, whether from programs of this
/// machine or in containers. Without it these are the newest here, and 17.
pub const POSTGRES_VERSION: &str = "LEASE_TEST_POSTGRES_VERSION";

/// As its makers write it.
const ENGINE: &str = "PostgreSQL";

const IMAGE: Image = Image {
    engine: ENGINE,
    official: "postgres",
    ours: "lease-test-postgres",
    version: "17",
};

/// A PostgreSQL server for tests.
///
/// Dropping it ends a server that was started here, and removes all that was its own.
#[derive(Debug)]
pub struct Postgres(Server<Config>);

impl Postgres {
    /// The one server of this process, found or started by the first call; see the [module](super) for the order.
    ///
    /// # Errors
    /// [`ServerError::Missing`] where there is none; whatever failed the first time fails at once the next times.
    pub fn shared() -> Result<&'static Self, ServerError> {
        static SHARED: OnceLock<Result<Postgres, ServerError>> = OnceLock::new();
        let found = SHARED.get_or_init(|| match env::var(POSTGRES_URL) {
            Ok(url) => Self::at(&url),
            Err(_) => Self::first_of(&Settings::default(), [Source::Container, Source::Local]),
        });
        found.as_ref().map_err(Clone::clone)
    }

    /// A server of one test's own. Server programs of this machine are preferred, for they start sooner.
    ///
    /// # Errors
    /// [`ServerError::Missing`] where there is nothing to run one with, [`ServerError::NotReady`] if it does not come up
    /// within 60 seconds, and any other error of the steps between.
    pub fn private(settings: &Settings) -> Result<Self, ServerError> {
        Self::first_of(settings, [Source::Local, Source::Container])
    }

    /// The server with this superuser's URL, which stays what it is: it can't be stopped or paused from here.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the URL can't be understood, [`ServerError::NotReady`] if no server answers at it.
    pub fn at(url: &str) -> Result<Self, ServerError> {
        Server::given(url, admin(url)?).map(Self)
    }

    /// The URL of a superuser and the database `postgres`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// A new private database with a random name, for one test case.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the server refuses, [`ServerError::TimedOut`] if it does not answer within 60 seconds.
    pub fn database(&self) -> Result<Database, ServerError> {
        Database::create(self.0.admin.clone(), &self.0.url)
    }

    /// Starts a stopped or killed server again, on the same port, and waits until it answers.
    ///
    /// # Errors
    /// [`ServerError::NotReady`] if it does not answer within 60 seconds; [`ServerError::NotOurs`].
    pub fn start(&self) -> Result<(), ServerError> {
        self.0.start()
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
        self.0.instance("make a standby of")?.follow(primary.url())?;
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
        self.0.stop()
    }

    /// Kills all processes of the server at once, as a loss of power does.
    ///
    /// What was committed is there after [`start`](Self::start), for the machine's memory of the files was not lost.
    ///
    /// # Errors
    /// [`ServerError::Io`] or [`ServerError::Docker`] if the system refuses; [`ServerError::NotOurs`].
    pub fn kill(&self) -> Result<(), ServerError> {
        self.0.kill()
    }

    /// Freezes all processes of the server: connections stay open and nothing answers.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn pause(&self) -> Result<(), ServerError> {
        self.0.pause()
    }

    /// Lets a paused server go on, with what it was doing.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn resume(&self) -> Result<(), ServerError> {
        self.0.resume()
    }

    /// Freezes one session, by a process id from [`Database::backend_pids`]; all others go on.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn pause_backend(&self, pid: i32) -> Result<(), ServerError> {
        self.0.instance("pause a session of")?.freeze_backend(pid, true)
    }

    /// Lets a frozen session go on.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn resume_backend(&self, pid: i32) -> Result<(), ServerError> {
        self.0.instance("resume a session of")?.freeze_backend(pid, false)
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
        self.0.sql(text)
    }

    fn first_of(settings: &Settings, order: [Source; 2]) -> Result<Self, ServerError> {
        let run = |source, port| Self::run(settings, source, port);
        server::first_of(ENGINE, settings.source, order, run)
    }

    fn run(settings: &Settings, source: Source, port: u16) -> Result<Self, ServerError> {
        let password = settings.password_or_random();
        let instance: Box<dyn Instance> = match source {
            Source::Container => Box::new(contained(settings, &password, port)?),
            Source::Local | Source::Any => Box::new(Local::create(PostgresRecipe::new(settings, &password)?, port)?),
        };
        let url = format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres");
        let admin = admin(&url)?;
        Server::started(url, admin, instance).map(Self)
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

/// The version that the environment asks for.
fn version() -> Option<String> {
    env::var(POSTGRES_VERSION).ok()
}

/// All server settings but addresses, in the order in which they are to be applied.
fn options(settings: &Settings, statements_contrib: bool) -> Vec<(String, String)> {
    let mut list = vec![("max_connections", settings.max_connections.to_string())];
    if !settings.durable {
        list.push(("fsync", "off".into()));
        list.push(("full_page_writes", "off".into()));
    }
    if statements_contrib {
        list.push(("shared_preload_libraries", "pg_stat_statements".into()));
    }
    let list = list.into_iter().map(|(setting, value)| (setting.to_owned(), value));
    list.chain(settings.more.iter().cloned()).collect()
}

fn contained(settings: &Settings, password: &str, port: u16) -> Result<Container, ServerError> {
    let image = image::find(&IMAGE, version())?;
    let mut list = options(settings, true);
    if let Some(folder) = &settings.sockets {
        list.push(("unix_socket_directories".into(), folder.to_string_lossy().into_owned()));
    }
    list.extend(container::files(settings));
    // Given as arguments, so that they hold from the first start on, for any image.
    let arguments = list
        .into_iter()
        .flat_map(|(setting, value)| ["-c".into(), format!("{setting}={value}")]);
    let command = ["docker-entrypoint.sh", "postgres"].map(str::to_owned);
    let request = container::server(image, command.into_iter().chain(arguments), settings, port, 5432)
        .with_env_var("POSTGRES_PASSWORD", password);
    Ok(Container::of("postgres", request))
}

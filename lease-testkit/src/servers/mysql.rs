mod admin;
mod database;
mod dialect;
mod galera;
mod options;
mod recipe;

use std::collections::HashMap;
use std::env;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use testcontainers::ImageExt;

use super::container::{self, Container};
use super::image;
use super::instance::Instance;
use super::local::Local;
use super::server::{self, SQL_LIMIT, Server};
use super::{ServerError, Settings, Source};
use admin::MysqlAdmin;
pub use database::MysqlDatabase;
pub use dialect::Dialect;
pub use galera::Galera;
use options::{argument, options};
use recipe::MariaDbRecipe;

/// The environment variable that names a MySQL server to use: the URL of a superuser, without a database that matters.
pub const MYSQL_URL: &str = "LEASE_TEST_MYSQL_URL";

/// As [`MYSQL_URL`], for MariaDB.
pub const MARIADB_URL: &str = "LEASE_TEST_MARIADB_URL";

/// The environment variable that names the version of the MySQL servers to run, by the tag of an image: `8.4`. Without it, 9.
pub const MYSQL_VERSION: &str = "LEASE_TEST_MYSQL_VERSION";

/// The environment variable that names the version of the MariaDB servers to run, such as `10.11`, whether from programs of
/// this machine or in containers. Without it these are what is here, and 11.8.
pub const MARIADB_VERSION: &str = "LEASE_TEST_MARIADB_VERSION";

/// Where a container has its data, whoever made the image.
const DATA: &str = "/var/lib/mysql";

/// A MySQL or MariaDB server for tests.
///
/// Dropping it ends a server that was started here, and removes all that was its own.
#[derive(Debug)]
pub struct Mysql {
    server: Server<MysqlAdmin>,
    /// What [`set`](Self::set) has changed, with the values from before, as they are written in SQL.
    before: Mutex<HashMap<String, String>>,
}

impl Mysql {
    /// The one server of this dialect and process, found or started by the first call; see the [module](super) for the order.
    ///
    /// # Errors
    /// [`ServerError::Missing`] where there is none; whatever failed the first time fails at once the next times.
    pub fn shared(dialect: Dialect) -> Result<&'static Self, ServerError> {
        static MYSQL: OnceLock<Result<Mysql, ServerError>> = OnceLock::new();
        static MARIADB: OnceLock<Result<Mysql, ServerError>> = OnceLock::new();
        let shared = match dialect {
            Dialect::Mysql => &MYSQL,
            Dialect::MariaDb => &MARIADB,
        };
        let found = shared.get_or_init(|| match env::var(dialect.url_variable()) {
            Ok(url) => Self::at(dialect, &url),
            Err(_) => Self::first_of(dialect, &Settings::default(), [Source::Container, Source::Local]),
        });
        found.as_ref().map_err(Clone::clone)
    }

    /// A server of one test's own. Server programs of this machine are preferred, for they start sooner.
    ///
    /// # Errors
    /// [`ServerError::Missing`] where there is nothing to run one with, [`ServerError::NotReady`] if it does not come up
    /// within 60 seconds, and any other error of the steps between.
    pub fn private(dialect: Dialect, settings: &Settings) -> Result<Self, ServerError> {
        Self::first_of(dialect, settings, [Source::Local, Source::Container])
    }

    /// The server with this superuser's URL, which stays what it is: it can't be stopped or paused from here.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the URL can't be understood, [`ServerError::NotReady`] if no server answers at it.
    pub fn at(dialect: Dialect, url: &str) -> Result<Self, ServerError> {
        Server::given(url, MysqlAdmin::new(dialect, url)?).map(Self::of)
    }

    /// Which of the two it is.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.server.admin.dialect
    }

    /// The URL of a superuser and the database `mysql`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.server.url
    }

    /// A new private database with a random name, for one test case.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the server refuses, [`ServerError::TimedOut`] if it does not answer within 60 seconds.
    pub fn database(&self) -> Result<MysqlDatabase, ServerError> {
        MysqlDatabase::create(self.server.admin.clone(), self.url())
    }

    /// Starts a stopped or killed server again, on the same port, and waits until it answers.
    ///
    /// # Errors
    /// [`ServerError::NotReady`] if it does not answer within 60 seconds; [`ServerError::NotOurs`].
    pub fn start(&self) -> Result<(), ServerError> {
        self.server.start()
    }

    /// Stops the server in order: its sessions are ended and everything is written to disk.
    ///
    /// # Errors
    /// [`ServerError::TimedOut`] if it has not ended within 60 seconds, as when it is paused; [`ServerError::NotOurs`].
    pub fn stop(&self) -> Result<(), ServerError> {
        self.server.stop()
    }

    /// Kills the server at once, as a loss of power does.
    ///
    /// What was committed is there after [`start`](Self::start), for the machine's memory of the files was not lost.
    ///
    /// # Errors
    /// [`ServerError::Io`] or [`ServerError::Docker`] if the system refuses; [`ServerError::NotOurs`].
    pub fn kill(&self) -> Result<(), ServerError> {
        self.server.kill()
    }

    /// Freezes the server: connections stay open and nothing answers.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn pause(&self) -> Result<(), ServerError> {
        self.server.pause()
    }

    /// Lets a paused server go on, with what it was doing.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn resume(&self) -> Result<(), ServerError> {
        self.server.resume()
    }

    /// Changes a global variable, such as `read_only` to `ON`, until the server's next start.
    ///
    /// When this returns, new sessions have the value. Open sessions have it too where the variable has no value for each
    /// session, as with `read_only`; else they keep theirs.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the server knows no such variable or value, [`ServerError::TimedOut`] if it is silent.
    pub fn set(&self, variable: &str, value: &str) -> Result<(), ServerError> {
        let now = self.sql(&format!("SELECT @@GLOBAL.{}", quoted(variable)))?;
        self.assign(variable, &literal(value))?;
        let now = now.first().map_or("", String::as_str);
        self.before().entry(variable.to_owned()).or_insert_with(|| literal(now));
        Ok(())
    }

    /// Takes back what [`set`](Self::set) of this handle changed. What it did not change gets the engine's own default.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn reset(&self, variable: &str) -> Result<(), ServerError> {
        let before = self.before().remove(variable);
        self.assign(variable, before.as_deref().unwrap_or("DEFAULT"))
    }

    /// Runs SQL text as a superuser on a connection of its own, and returns the first column of its rows.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the server refuses a statement, [`ServerError::TimedOut`] after ten seconds.
    pub fn sql(&self, text: &str) -> Result<Vec<String>, ServerError> {
        self.server.sql(text)
    }

    /// One of the server's counters, such as `Com_stmt_execute`; nothing if it has none of that name.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if the server refuses, [`ServerError::TimedOut`] after ten seconds.
    pub fn status(&self, counter: &str) -> Result<Option<u64>, ServerError> {
        self.server.admin.status(counter, SQL_LIMIT)
    }

    fn first_of(dialect: Dialect, settings: &Settings, order: [Source; 2]) -> Result<Self, ServerError> {
        let run = |source, port| Self::run(dialect, settings, source, port);
        server::first_of(dialect.name(), settings.source, order, run)
    }

    fn run(dialect: Dialect, settings: &Settings, source: Source, port: u16) -> Result<Self, ServerError> {
        let password = settings.password_or_random();
        let instance: Box<dyn Instance> = match (source, dialect) {
            (Source::Container, _) => Box::new(contained(dialect, settings, &password, port)?),
            (_, Dialect::MariaDb) => Box::new(Local::create(MariaDbRecipe::new(settings, &password)?, port)?),
            (_, Dialect::Mysql) => {
                return Err(ServerError::Missing {
                    engine: dialect.name(),
                    looked_for: "a container, for programs of this machine are not used".into(),
                });
            }
        };
        let url = format!("mysql://root:{password}@127.0.0.1:{port}/{}", admin::SYSTEM);
        let admin = MysqlAdmin::new(dialect, &url)?;
        Server::started(url, admin, instance).map(Self::of)
    }

    fn of(server: Server<MysqlAdmin>) -> Self {
        Self {
            server,
            before: Mutex::default(),
        }
    }

    fn before(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn assign(&self, variable: &str, literal: &str) -> Result<(), ServerError> {
        let statement = format!("SET GLOBAL {} = {literal}", quoted(variable));
        self.sql(&statement).map(drop)
    }
}

fn contained(dialect: Dialect, settings: &Settings, password: &str, port: u16) -> Result<Container, ServerError> {
    let image = image::find(dialect.image(), env::var(dialect.version_variable()).ok())?;
    let mut list = options(dialect, settings);
    if let Some(folder) = &settings.sockets {
        let socket = folder.join("mysqld.sock");
        list.push(("socket".into(), socket.to_string_lossy().into_owned()));
    }
    list.extend(container::files(settings));
    if settings.durable {
        list.push(("port".into(), port.to_string()));
        list.push(("bind_address".into(), "127.0.0.1".into()));
    }
    let command = ["docker-entrypoint.sh", dialect.program()].map(str::to_owned);
    let command = command.into_iter().chain(list.into_iter().map(argument));
    let request = if settings.durable {
        container::measured(image, command, settings, DATA)
    } else {
        container::server(image, command, settings, port, 3306)
    };
    // MariaDB's image takes MySQL's name for it, too.
    let request = request.with_env_var("MYSQL_ROOT_PASSWORD", password);
    Ok(Container::of(dialect.program(), request))
}

/// What makes `root` the one superuser, from any address and with this password.
fn superuser(password: &str) -> String {
    let password = password.replace('\\', "\\\\").replace('\'', "''");
    format!(
        "FLUSH PRIVILEGES;\nCREATE USER root@'%' IDENTIFIED BY '{password}';\nGRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;\n\
         DROP USER IF EXISTS root@localhost, root@'127.0.0.1', root@'::1';\n"
    )
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A value as SQL has it: numbers bare, for a variable that is a number takes no text.
fn literal(value: &str) -> String {
    let is_number = value.parse::<f64>().is_ok() && !value.contains(char::is_alphabetic);
    if is_number {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

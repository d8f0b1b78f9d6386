//! Which database, and the one interface to each.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lease_core::{Evict, Finding, Inspect, Label, Lease, LeaseBuilder, LeaseName, LeaseRow, Note, Release, RepoError};
use lease_mysql::MysqlRepo;
use lease_postgres::PostgresRepo;
use lease_sqlite::SqliteRepo;

use crate::answer::Failure;
use crate::args::Where;

/// The URL of a database, which may have a password in it.
#[derive(Clone)]
pub(crate) struct Url(String);

/// A database with leases.
pub(crate) enum Database {
    Postgres(PostgresRepo),
    /// MariaDB too.
    Mysql(MysqlRepo),
    Sqlite(SqliteRepo),
}

const NONE: &str = "no database is named: give --url, --url-file or --local, or set LEASE_URL or LEASE_URL_FILE. \
                    There is no default, since one on each machine would exclude nobody";

impl Url {
    /// The one that is meant.
    pub(crate) fn of(place: &Where) -> Result<Self, Failure> {
        if let Some(url) = &place.url {
            return Ok(Self(url.clone()));
        }
        if let Some(file) = &place.url_file {
            return Self::in_file(file);
        }
        if place.local {
            return Self::local();
        }
        if let Some(url) = variable("LEASE_URL")? {
            return Ok(Self(url));
        }
        match variable("LEASE_URL_FILE")? {
            Some(file) => Self::in_file(Path::new(&file)),
            None => Err(Failure::config(NONE)),
        }
    }

    /// One that this program made itself.
    pub(crate) fn in_words(url: String) -> Self {
        Self(url)
    }

    /// One that the environment has under this name.
    pub(crate) fn of_variable(name: &str) -> Result<Self, Failure> {
        variable(name)?
            .map(Self)
            .ok_or_else(|| Failure::config(format!("{name} is not set")))
    }

    /// As it was given: not to be shown.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    fn in_file(file: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(file);
        let text = text.map_err(|error| Failure::config(format!("the URL's file {}: {error}", file.display())))?;
        match text.lines().next().map(str::trim) {
            Some(url) if !url.is_empty() => Ok(Self(url.to_owned())),
            _ => Err(Failure::config(format!("the URL's file {} is empty", file.display()))),
        }
    }

    /// The user's own file, whose folder is made.
    fn local() -> Result<Self, Failure> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // A relative one is to be ignored (XDG Base Directory Specification).
        let state = set("XDG_STATE_HOME").filter(|folder| folder.is_absolute());
        let state = state.or_else(|| Some(set("HOME")?.join(".local/state")));
        let folder = state
            .ok_or_else(|| Failure::config("--local needs HOME or XDG_STATE_HOME"))?
            .join("lease");
        let file = folder.join("leases.db");
        fs::create_dir_all(&folder).map_err(|error| Failure::config(format!("{}: {error}", folder.display())))?;
        match file.to_str() {
            Some(file) => Ok(Self(format!("sqlite:{file}"))),
            None => Err(Failure::config(format!("{} is no UTF-8", file.display()))),
        }
    }

    /// The statement that makes the table there.
    pub(crate) fn schema(&self) -> Result<&'static str, Failure> {
        Ok(match self.engine()? {
            Engine::Postgres => lease_postgres::SCHEMA,
            Engine::Mysql => lease_mysql::SCHEMA,
            Engine::Sqlite => lease_sqlite::SCHEMA,
        })
    }

    /// A server is connected to when it is used, and once: a command has one thing to ask it.
    pub(crate) async fn open(&self) -> Result<Database, Failure> {
        Ok(match self.engine()? {
            Engine::Postgres => Database::Postgres(PostgresRepo::lazy(&self.0)?),
            Engine::Mysql => Database::Mysql(MysqlRepo::lazy(&self.0)?),
            Engine::Sqlite => {
                let repo = SqliteRepo::connect(&self.0).await?;
                repo.migrate().await?;
                Database::Sqlite(repo)
            }
        })
    }

    /// What there is to say of the database; of one that can't be connected to, why.
    pub(crate) async fn diagnose(&self) -> Result<Vec<Finding>, Failure> {
        let found = match self.engine()?.connect(&self.0).await {
            Ok(Database::Postgres(repo)) => repo.diagnose().await,
            Ok(Database::Mysql(repo)) => repo.diagnose().await,
            Ok(Database::Sqlite(repo)) => {
                // As at any first use. What is wrong with it is one of the findings.
                let _ = repo.migrate().await;
                repo.diagnose().await
            }
            Err(error) => Err(error),
        };
        Ok(found.unwrap_or_else(|error| vec![Finding::failure("connection", &error)]))
    }

    fn engine(&self) -> Result<Engine, Failure> {
        match self.0.split_once(':').map(|(scheme, _)| scheme) {
            Some("postgres" | "postgresql") => Ok(Engine::Postgres),
            Some("mysql" | "mariadb") => Ok(Engine::Mysql),
            Some("sqlite") => Ok(Engine::Sqlite),
            // Not what it is instead: it may be a mistyped password.
            _ => Err(Failure::config(
                "the URL begins with none of postgres:, postgresql:, mysql:, mariadb: and sqlite:",
            )),
        }
    }
}

enum Engine {
    Postgres,
    Mysql,
    Sqlite,
}

impl Engine {
    async fn connect(&self, url: &str) -> Result<Database, RepoError> {
        Ok(match self {
            Self::Postgres => Database::Postgres(PostgresRepo::connect(url).await?),
            Self::Mysql => Database::Mysql(MysqlRepo::connect(url).await?),
            Self::Sqlite => Database::Sqlite(SqliteRepo::connect(url).await?),
        })
    }
}

fn variable(name: &str) -> Result<Option<String>, Failure> {
    match env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(Failure::config(format!("{name} is no UTF-8"))),
    }
}

macro_rules! each {
    ($self:ident, $repo:ident => $call:expr) => {
        match $self {
            Self::Postgres($repo) => $call,
            Self::Mysql($repo) => $call,
            Self::Sqlite($repo) => $call,
        }
    };
}

impl Database {
    /// Leases of this database.
    pub(crate) fn lease(&self) -> LeaseBuilder {
        each!(self, repo => Lease::builder(repo.clone()))
    }

    pub(crate) async fn list(&self) -> Result<Vec<LeaseRow>, RepoError> {
        each!(self, repo => repo.list().await)
    }

    pub(crate) async fn get(&self, name: &LeaseName) -> Result<Option<LeaseRow>, RepoError> {
        each!(self, repo => repo.get(name).await)
    }

    pub(crate) async fn evict(&self, name: &LeaseName, by: &Label, why: &Note, now: bool) -> Result<Evict, RepoError> {
        if now {
            return each!(self, repo => repo.evict_now(name, by, why).await);
        }
        each!(self, repo => repo.evict(name, by, why).await)
    }

    pub(crate) async fn pause(
        &self,
        name: &LeaseName,
        time: Duration,
        by: &Label,
        why: &Note,
    ) -> Result<(), RepoError> {
        each!(self, repo => repo.pause(name, time, by, why).await)
    }

    pub(crate) async fn resume(&self, name: &LeaseName) -> Result<Release, RepoError> {
        each!(self, repo => repo.resume(name).await)
    }

    pub(crate) async fn purge(&self, older_than: Duration) -> Result<u64, RepoError> {
        each!(self, repo => repo.purge(older_than).await)
    }

    pub(crate) async fn migrate(&self) -> Result<(), RepoError> {
        each!(self, repo => repo.migrate().await)
    }
}

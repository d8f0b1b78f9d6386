//! [`Engine`]: a durable server for the length of the run, or files for SQLite; and [`Place`], a database on it.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use lease_testkit::servers::{Database, Dialect, Mysql, MysqlDatabase, Postgres, ServerError, Settings};
use tempfile::TempDir;

use crate::images;
use crate::machine::Machine;

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    Postgres,
    Mariadb,
    Mysql,
    Sqlite,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Postgres, Self::Mariadb, Self::Mysql, Self::Sqlite];

    /// As its makers write it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mariadb => "MariaDB",
            Self::Mysql => "MySQL",
            Self::Sqlite => "SQLite",
        }
    }

    /// What the programs of `bench/` call the backend.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mariadb | Self::Mysql => "mysql",
            Self::Sqlite => "sqlite",
        }
    }

    /// The statements of a pair, as the backend's tests pin them.
    pub(super) const fn pair(self) -> &'static str {
        match self {
            Self::Postgres => "`Acquire`, `Release`",
            Self::Mariadb | Self::Mysql => "`Peek`, `Take`, `Release`",
            Self::Sqlite => "`Peek`, `Acquire`, `Release`",
        }
    }
}

/// A server that ends with this.
pub(super) struct Engine {
    pub(super) kind: Kind,
    server: Server,
}

enum Server {
    Postgres(Postgres),
    Mysql(Mysql),
    Files,
}

/// An empty database that is gone with this.
pub(super) enum Place {
    Postgres(Box<Database>),
    Mysql(MysqlDatabase),
    File { _folder: TempDir, path: PathBuf },
}

/// What the server has counted so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Look {
    statements: Option<f64>,
    log_bytes: Option<f64>,
    transactions: Option<f64>,
    /// Where its log ends.
    at: String,
}

/// What it counted between two looks. Nothing where it does not count such a thing.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted {
    pub(super) statements: Option<f64>,
    /// Write-ahead log or redo.
    pub(super) log_bytes: Option<f64>,
    pub(super) transactions: Option<f64>,
    /// Row locks that were written down.
    pub(super) row_locks: Option<f64>,
}

impl Engine {
    /// Starts it, as durable as in production.
    ///
    /// # Errors
    /// There is nothing to run it with here.
    pub(super) fn start(kind: Kind, machine: &Machine) -> anyhow::Result<Self> {
        let server = match kind {
            Kind::Postgres => {
                let server = Postgres::private(&Settings::durable())?;
                server.sql("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")?;
                server.sql("CREATE EXTENSION IF NOT EXISTS pg_walinspect")?;
                Server::Postgres(server)
            }
            Kind::Mariadb => Server::Mysql(mysql(Dialect::MariaDb, machine)?),
            Kind::Mysql => Server::Mysql(mysql(Dialect::Mysql, machine)?),
            Kind::Sqlite => Server::Files,
        };
        Ok(Self { kind, server })
    }

    /// A new place, without a table.
    pub(super) fn place(&self) -> anyhow::Result<Place> {
        Ok(match &self.server {
            Server::Postgres(server) => Place::Postgres(Box::new(server.database()?)),
            Server::Mysql(server) => Place::Mysql(server.database()?),
            Server::Files => {
                let folder = tempfile::tempdir()?;
                let path = folder.path().join("leases.db");
                Place::File { _folder: folder, path }
            }
        })
    }

    /// Its version and what a commit waits for, as it says itself.
    pub(super) fn facts(&self) -> anyhow::Result<String> {
        let settings = |sql: &dyn Fn(&str) -> Result<Vec<String>, ServerError>, list: &[(&str, &str)]| {
            let each = list
                .iter()
                .map(|(name, query)| Ok(format!("{name} = {}", sql(query)?.concat())));
            each.collect::<anyhow::Result<Vec<String>>>().map(|all| all.join(", "))
        };
        match &self.server {
            Server::Postgres(server) => {
                let names = [
                    "fsync",
                    "synchronous_commit",
                    "full_page_writes",
                    "wal_sync_method",
                    "shared_buffers",
                ];
                let queries = names.map(|name| (name, format!("SELECT current_setting('{name}')")));
                let list: Vec<(&str, &str)> = queries.iter().map(|(name, query)| (*name, query.as_str())).collect();
                let version = server.sql("SELECT current_setting('server_version')")?.concat();
                Ok(format!("{version}: {}", settings(&|text| server.sql(text), &list)?))
            }
            Server::Mysql(server) => {
                let names = [
                    "innodb_flush_log_at_trx_commit",
                    "sync_binlog",
                    "log_bin",
                    "innodb_doublewrite",
                ];
                let queries = names.map(|name| (name, format!("SELECT @@{name}")));
                let list: Vec<(&str, &str)> = queries.iter().map(|(name, query)| (*name, query.as_str())).collect();
                let version = server.sql("SELECT version()")?.concat();
                // A container where this machine has no such program, which is always so for MySQL.
                let place = match self.kind {
                    Kind::Mysql => ", in a container on the host's network, its data in a volume",
                    _ => "",
                };
                Ok(format!(
                    "{version}: {}{place}",
                    settings(&|text| server.sql(text), &list)?
                ))
            }
            Server::Files => Ok("journal_mode = WAL, synchronous = FULL, for all".to_owned()),
        }
    }

    /// Reads its counters.
    pub(super) fn look(&self, place: &Place) -> anyhow::Result<Look> {
        match (&self.server, place) {
            (Server::Postgres(server), Place::Postgres(database)) => {
                let query = format!(
                    "SELECT concat_ws(' ', coalesce(sum(calls), 0), coalesce(sum(wal_bytes), 0), \
                     pg_snapshot_xmax(pg_current_snapshot()), pg_current_wal_lsn()) \
                     FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = '{}'",
                    database.name()
                );
                let line = server.sql(&query)?.concat();
                let words: Vec<&str> = line.split(' ').collect();
                let [statements, log_bytes, transactions, at] = words[..] else {
                    bail!("the counters are {line}");
                };
                Ok(Look {
                    statements: Some(statements.parse()?),
                    log_bytes: Some(log_bytes.parse()?),
                    transactions: Some(transactions.parse()?),
                    at: at.to_owned(),
                })
            }
            (Server::Mysql(server), _) => {
                // Those who look run texts: what is prepared is the contender's.
                let counter = |name: &str| anyhow::Ok(server.status(name)?.map(|count| count as f64));
                Ok(Look {
                    statements: counter("Com_stmt_execute")?,
                    log_bytes: counter("Innodb_os_log_written")?,
                    ..Look::default()
                })
            }
            (_, Place::File { path, .. }) => {
                let log = path.with_extension("db-wal");
                let bytes = fs::metadata(log).map_or(0.0, |found| found.len() as f64);
                Ok(Look {
                    log_bytes: Some(bytes),
                    ..Look::default()
                })
            }
            _ => bail!("the place belongs to another engine"),
        }
    }

    /// What was counted from one look to a later one.
    pub(super) fn between(&self, before: &Look, after: &Look) -> anyhow::Result<Counted> {
        let grown = |value: fn(&Look) -> Option<f64>| Some(value(after)? - value(before)?);
        let mut counted = Counted {
            statements: grown(|look| look.statements),
            log_bytes: grown(|look| look.log_bytes),
            transactions: grown(|look| look.transactions),
            row_locks: None,
        };
        if let Server::Postgres(server) = &self.server {
            // What there is not can't be inspected.
            let locks = if before.at == after.at {
                0.0
            } else {
                let query = format!(
                    "SELECT coalesce(sum(count), 0) FROM pg_get_wal_stats('{}', '{}', true) \
                     WHERE \"resource_manager/record_type\" = 'Heap/LOCK'",
                    before.at, after.at
                );
                server.sql(&query)?.concat().parse().context("a number of row locks")?
            };
            counted.row_locks = Some(locks);
        }
        Ok(counted)
    }
}

impl Place {
    pub(super) fn url(&self) -> String {
        match self {
            Self::Postgres(database) => database.url().to_owned(),
            Self::Mysql(database) => database.url().to_owned(),
            Self::File { path, .. } => path.to_string_lossy().into_owned(),
        }
    }

    /// The first column of what a server's SQL answers, as a number.
    pub(super) fn number(&self, text: &str) -> anyhow::Result<f64> {
        let answer = match self {
            Self::Postgres(database) => database.sql(text)?,
            Self::Mysql(database) => database.sql(text)?,
            Self::File { .. } => bail!("a file answers nothing"),
        };
        answer.concat().parse().with_context(|| format!("{text} is no number"))
    }
}

fn mysql(dialect: Dialect, machine: &Machine) -> anyhow::Result<Mysql> {
    let start = || Mysql::private(dialect, &Settings::durable());
    match start() {
        Err(ServerError::Missing { .. }) if machine.docker && machine.debootstrap.is_some() => {
            images::ensure(&[images::mysql(dialect)?])?;
            Ok(start()?)
        }
        other => Ok(other?),
    }
}

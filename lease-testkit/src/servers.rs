//! Real database servers for tests: found by URL, started in containers, or run from the programs of this machine.
//!
//! A test asks for [`Postgres::shared`] or [`Mysql::shared`] and takes a [`Database`] or [`MysqlDatabase`] of its own from it. A
//! test that breaks its server (stops it, freezes it, makes it read-only) takes a `private` one. [`Galera`] is a cluster.
//!
//! Everything here is blocking code, so that it may be called from any runtime and outside of one: a shared server
//! outlives the runtime of each `#[tokio::test]`.
//!
//! # Where a server comes from
//!
//! 1. The URL in [`POSTGRES_URL`], [`MYSQL_URL`] or [`MARIADB_URL`]; `cargo xtask test` starts one server for each engine and
//!    passes its URL on by it.
//! 2. A container on a reachable Docker engine: the official image if the machine has it, else the image that
//!    `cargo xtask images` builds, else the official image if it can be pulled soon.
//! 3. The newest server programs installed on this machine, run under an unprivileged user in a temporary folder; but
//!    for MySQL.
//!
//! # What stays behind
//!
//! Nothing, also if the process that started a server is killed: a watchdog process in a session of its own notices the
//! death of its owner, ends the server and removes its folder or container. Local servers need Linux (`/proc`).

mod admin;
mod blocking;
mod command;
mod container;
mod error;
mod image;
mod instance;
mod local;
mod mysql;
mod network;
mod place;
mod ports;
mod postgres;
mod processes;
mod proxy;
mod ready;
mod recipe;
mod server;
mod settings;
mod url;
mod watchdog;

use std::time::Duration;

pub use error::ServerError;
pub use mysql::{Dialect, Galera, MARIADB_URL, MARIADB_VERSION, MYSQL_URL, MYSQL_VERSION, Mysql, MysqlDatabase};
pub use postgres::{Database, POSTGRES_URL, POSTGRES_VERSION, Pooler, Postgres};
pub use proxy::Proxy;
pub use settings::{Settings, Source};

/// How long creating a database, or a statement given to one, may take.
const LIMIT: Duration = Duration::from_secs(60);

/// How long a test waits at its end for its database to be dropped.
const DROP_LIMIT: Duration = Duration::from_secs(5);

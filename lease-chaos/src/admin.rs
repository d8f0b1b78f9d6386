//! Statements of the superuser, for the nemesis and the sampler. None waits for long.

use std::time::Duration;

use anyhow::{Context, bail};
use mysql_async::prelude::Queryable;
use tokio::time::timeout;
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::engine::Engine;

/// How long a statement may take, and connecting.
const LIMIT: Duration = Duration::from_secs(2);

/// The password of MySQL's users. Nobody else is on the network of a world.
pub(crate) const PASSWORD: &str = "chaos";
/// The database that has the leases.
pub(crate) const fn database(engine: Engine) -> &'static str {
    if engine.is_postgres() { "postgres" } else { "app" }
}

/// A superuser's connection to one server, opened when it is needed.
#[derive(Debug)]
pub(crate) struct Admin {
    engine: Engine,
    address: String,
    open: Option<Open>,
}

#[derive(Debug)]
enum Open {
    Postgres(tokio_postgres::Client),
    Mysql(mysql_async::Conn),
}

impl Admin {
    pub(crate) fn new(engine: Engine, address: &str) -> Self {
        Self {
            engine,
            address: address.to_owned(),
            open: None,
        }
    }

    /// Runs one statement, and returns the first column of its rows.
    ///
    /// # Errors
    /// The server refused it, or was silent.
    pub(crate) async fn sql(&mut self, text: &str) -> anyhow::Result<Vec<String>> {
        self.sql_within(text, LIMIT).await
    }

    /// As [`sql`](Self::sql), with this much time.
    pub(crate) async fn sql_within(&mut self, text: &str, limit: Duration) -> anyhow::Result<Vec<String>> {
        match timeout(limit, self.ask(text)).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => {
                self.open = None;
                Err(error.context(format!("{}: {text}", self.address)))
            }
            Err(_) => {
                self.open = None;
                bail!("{}: no answer within {limit:?}: {text}", self.address)
            }
        }
    }

    async fn ask(&mut self, text: &str) -> anyhow::Result<Vec<String>> {
        let open = match self.open.take() {
            Some(open) => open,
            None => connect(self.engine, &self.address, true).await?,
        };
        match self.open.insert(open) {
            Open::Postgres(client) => {
                let messages = client.simple_query(text).await?;
                let first = |message| match message {
                    SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                    _ => None,
                };
                Ok(messages.into_iter().filter_map(first).collect())
            }
            Open::Mysql(connection) => {
                let rows: Vec<mysql_async::Row> = connection.query(text).await?;
                let first = |mut row: mysql_async::Row| row.take_opt::<String, _>(0)?.ok();
                Ok(rows.into_iter().filter_map(first).collect())
            }
        }
    }
}

/// Connections of the service, as many as the server takes. They are there until they are dropped.
#[derive(Debug)]
pub(crate) struct Crowd(Vec<Open>);

impl Crowd {
    /// Opens connections until one is refused.
    pub(crate) async fn rush(engine: Engine, address: &str, most: usize) -> Self {
        let mut all = Vec::new();
        while all.len() < most {
            match timeout(LIMIT, connect(engine, address, false)).await {
                Ok(Ok(open)) => all.push(open),
                Ok(Err(_)) | Err(_) => break,
            }
        }
        Self(all)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

async fn connect(engine: Engine, address: &str, as_superuser: bool) -> anyhow::Result<Open> {
    if engine.is_postgres() {
        let user = if as_superuser { "postgres" } else { "service" };
        let text = format!(
            "host={address} user={user} dbname={} application_name=nemesis",
            database(engine)
        );
        let (client, connection) = tokio_postgres::connect(&text, NoTls).await?;
        // It ends with its client.
        tokio::spawn(connection);
        Ok(Open::Postgres(client))
    } else {
        let user = if as_superuser { "root" } else { "service" };
        let options = mysql_async::OptsBuilder::default()
            .ip_or_hostname(address)
            .tcp_port(engine.port())
            .user(Some(user))
            .pass(Some(PASSWORD))
            .prefer_socket(Some(false));
        let connection = mysql_async::Conn::new(options).await.context("connect")?;
        Ok(Open::Mysql(connection))
    }
}

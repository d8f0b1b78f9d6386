//! The database that a measurement runs on, and one plain connection to look at it.

use std::ops::Deref;

use anyhow::Context;
use lease_testkit::servers::{Database, Postgres, Settings};
use tokio_postgres::{Client, NoTls};

/// A durable server with a private database in it. The server ends with it.
pub(super) struct Measured {
    pub(super) database: Database,
    // After the database, which is dropped on it first.
    _server: Postgres,
}

impl Measured {
    pub(super) fn start() -> anyhow::Result<Self> {
        let server = Postgres::private(&Settings::durable())?;
        let database = server.database()?;
        Ok(Self {
            database,
            _server: server,
        })
    }
}

/// A connection that is not the repo's.
pub(super) struct Onlooker(Client);

impl Onlooker {
    pub(super) async fn connect(url: &str) -> anyhow::Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self(client))
    }

    /// The one number that a query answers with.
    pub(super) async fn number(&self, query: &str) -> anyhow::Result<i64> {
        let row = self.0.query_one(query, &[]).await.with_context(|| query.to_owned())?;
        Ok(row.try_get(0)?)
    }
}

impl Deref for Onlooker {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

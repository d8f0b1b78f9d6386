//! On tokio-postgres.

use anyhow::{Context, ensure};
use bench_harness::{Contender, Place};
use lease_core::microseconds;
use lease_postgres::PostgresRepo;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, Statement};

use super::{POSTGRES, Text, holder};
use crate::Backend;

/// A connection with the statements of a tenure.
pub struct BarePostgres {
    client: Client,
    acquire: Statement,
    renew: Statement,
    release: Statement,
    ttl: i64,
    count: u64,
}

impl BarePostgres {
    async fn connect(place: &Place) -> anyhow::Result<Self> {
        let (client, connection) = tokio_postgres::connect(&place.url, NoTls).await?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self {
            acquire: prepared(&client, "Acquire").await?,
            renew: prepared(&client, "Renew").await?,
            release: prepared(&client, "Release").await?,
            client,
            ttl: microseconds(place.ttl),
            count: 0,
        })
    }
}

async fn prepared(client: &Client, name: &str) -> anyhow::Result<Statement> {
    let text = Text::of(POSTGRES, name)?.numbered;
    let types = [Type::TEXT, Type::TEXT, Type::INT8];
    Ok(client.prepare_typed(&text, &types).await?)
}

impl Contender for BarePostgres {
    /// Its name and holder.
    type Guard = (String, String);

    const RENEWS: bool = false;

    async fn prepare(place: &Place) -> anyhow::Result<()> {
        Ok(PostgresRepo::open(place, 1).await?.make_table().await?)
    }

    async fn open(place: &Place, clients: usize) -> anyhow::Result<Vec<Self>> {
        let mut opened = Vec::new();
        for _ in 0..clients {
            opened.push(Self::connect(place).await?);
        }
        Ok(opened)
    }

    async fn try_acquire(&mut self, name: &str) -> anyhow::Result<Option<Self::Guard>> {
        self.count += 1;
        let holder = holder(self.count);
        let rows = self.client.query(&self.acquire, &[&name, &holder, &self.ttl]).await?;
        let token: Option<i64> = rows.first().context("an answer")?.try_get(0)?;
        Ok(token.map(|_| (name.to_owned(), holder)))
    }

    async fn release(&mut self, (name, holder): Self::Guard) -> anyhow::Result<()> {
        let count = self.client.execute(&self.release, &[&name, &holder, &0_i64]).await?;
        ensure!(count == 1, "it was ours");
        Ok(())
    }

    async fn renew(&mut self, (name, holder): &mut Self::Guard) -> anyhow::Result<()> {
        let count = self.client.execute(&self.renew, &[name, holder, &self.ttl]).await?;
        ensure!(count == 1, "it is ours");
        Ok(())
    }
}

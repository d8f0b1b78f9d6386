//! On mysql_async: a look, one statement that decides, and the release.

use anyhow::{Context, ensure};
use bench_harness::{Contender, Place};
use lease_core::microseconds;
use lease_mysql::MysqlRepo;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Params, Row, Statement, Value};

use super::{MYSQL, Text, holder};
use crate::Backend;

/// A connection with the statements of a tenure.
pub struct BareMysql {
    connection: Conn,
    peek: Prepared,
    make: Prepared,
    take: Prepared,
    renew: Prepared,
    release: Prepared,
    ttl: i64,
    count: u64,
}

impl BareMysql {
    async fn connect(place: &Place) -> anyhow::Result<Self> {
        let opts = OptsBuilder::from_opts(Opts::from_url(&place.url)?)
            .prefer_socket(false)
            .client_found_rows(true);
        let mut connection = Conn::new(opts).await?;
        connection.query_drop("SET time_zone = '+00:00'").await?;
        Ok(Self {
            peek: Prepared::new(&mut connection, "Peek").await?,
            make: Prepared::new(&mut connection, "Make").await?,
            take: Prepared::new(&mut connection, "Take").await?,
            renew: Prepared::new(&mut connection, "Renew").await?,
            release: Prepared::new(&mut connection, "Release").await?,
            connection,
            ttl: microseconds(place.ttl),
            count: 0,
        })
    }

    /// Answers how many rows it found.
    async fn change(&mut self, which: fn(&Self) -> &Prepared, values: &[Value]) -> anyhow::Result<u64> {
        let prepared = which(self);
        let (statement, values) = (prepared.statement.clone(), prepared.values(values)?);
        self.connection.exec_drop(statement, values).await?;
        Ok(self.connection.affected_rows())
    }
}

impl Contender for BareMysql {
    /// Its name and holder.
    type Guard = (Value, Value);

    const RENEWS: bool = false;

    async fn prepare(place: &Place) -> anyhow::Result<()> {
        Ok(MysqlRepo::open(place, 1).await?.make_table().await?)
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
        let name = Value::Bytes(name.as_bytes().to_vec());
        let holder = Value::Bytes(holder(self.count).into_bytes());
        let values = self.peek.values(std::slice::from_ref(&name))?;
        let row: Option<Row> = self.connection.exec_first(&self.peek.statement, values).await?;
        let row = row.context("a look has a row")?;
        let there: bool = row.get(0).context("whether there is a row")?;
        let (ttl, guard) = (Value::Int(self.ttl), (name.clone(), holder.clone()));
        if !there {
            let made = self.change(|bare| &bare.make, &[name, holder, ttl]).await?;
            return Ok((made == 1).then_some(guard));
        }
        let (token, next): (i64, i64) = (row.get(1).context("a token")?, row.get(2).context("the next token")?);
        let left: i64 = row.get(4).context("the time that is left")?;
        if left > 0 {
            return Ok(None);
        }
        let values = [name, holder, ttl, Value::Int(next), Value::Int(token)];
        let taken = self.change(|bare| &bare.take, &values).await?;
        Ok((taken == 1).then_some(guard))
    }

    async fn release(&mut self, (name, holder): Self::Guard) -> anyhow::Result<()> {
        let count = self
            .change(|bare| &bare.release, &[name, holder, Value::Int(0)])
            .await?;
        ensure!(count == 1, "it was ours");
        Ok(())
    }

    async fn renew(&mut self, (name, holder): &mut Self::Guard) -> anyhow::Result<()> {
        let values = [name.clone(), holder.clone(), Value::Int(self.ttl)];
        ensure!(self.change(|bare| &bare.renew, &values).await? == 1, "it is ours");
        Ok(())
    }
}

struct Prepared {
    statement: Statement,
    /// Which value stands at each `?`, from zero on.
    places: Vec<usize>,
}

impl Prepared {
    async fn new(connection: &mut Conn, name: &str) -> anyhow::Result<Self> {
        let Text { marked, places, .. } = Text::of(MYSQL, name)?;
        let statement = connection.prep(marked).await?;
        Ok(Self { statement, places })
    }

    fn values(&self, values: &[Value]) -> anyhow::Result<Params> {
        let each = self.places.iter().map(|place| values.get(*place).cloned());
        let all: Option<Vec<Value>> = each.collect();
        Ok(Params::Positional(all.context("a value is missing")?))
    }
}

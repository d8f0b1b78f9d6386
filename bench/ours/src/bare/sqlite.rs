//! On rusqlite: a look, one statement that decides, and the release, as durable as ours.

use std::time::Duration;

use anyhow::ensure;
use bench_harness::{Contender, Place};
use lease_core::microseconds;
use lease_sqlite::SqliteRepo;
use rusqlite::{Connection, OptionalExtension, params};

use super::{SQLITE, Text, holder};
use crate::Backend;

/// A connection with the statements of a tenure.
pub struct BareSqlite {
    connection: Connection,
    peek: String,
    acquire: String,
    renew: String,
    release: String,
    ttl: i64,
    count: u64,
}

impl BareSqlite {
    fn connect(place: &Place) -> anyhow::Result<Self> {
        let connection = Connection::open(&place.url)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // SQLite counts `$1` by where it stands first, and `?1` by its number.
        let text = |name| anyhow::Ok(Text::of(SQLITE, name)?.numbered.replace('$', "?"));
        Ok(Self {
            connection,
            peek: text("Peek")?,
            acquire: text("Acquire")?,
            renew: text("Renew")?,
            release: text("Release")?,
            ttl: microseconds(place.ttl),
            count: 0,
        })
    }
}

impl Contender for BareSqlite {
    /// Its name and holder.
    type Guard = (String, String);

    const RENEWS: bool = false;

    /// Each call is carried out where it is made.
    fn workers(clients: usize) -> usize {
        clients
    }

    async fn prepare(place: &Place) -> anyhow::Result<()> {
        let repo = <SqliteRepo as Backend>::open(place, 1).await?;
        Ok(repo.make_table().await?)
    }

    async fn open(place: &Place, clients: usize) -> anyhow::Result<Vec<Self>> {
        (0..clients).map(|_| Self::connect(place)).collect()
    }

    async fn try_acquire(&mut self, name: &str) -> anyhow::Result<Option<Self::Guard>> {
        self.count += 1;
        let holder = holder(self.count);
        let mut peek = self.connection.prepare_cached(&self.peek)?;
        let times = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(3)?));
        if peek
            .query_row([name], times)
            .optional()?
            .is_some_and(|(expires_at, now)| expires_at > now)
        {
            return Ok(None);
        }
        let mut acquire = self.connection.prepare_cached(&self.acquire)?;
        let token: Option<i64> = acquire
            .query_row(params![name, holder, self.ttl], |row| row.get(0))
            .optional()?;
        Ok(token.map(|_| (name.to_owned(), holder)))
    }

    async fn release(&mut self, (name, holder): Self::Guard) -> anyhow::Result<()> {
        let mut release = self.connection.prepare_cached(&self.release)?;
        ensure!(release.execute(params![name, holder, 0])? == 1, "it was ours");
        Ok(())
    }

    async fn renew(&mut self, (name, holder): &mut Self::Guard) -> anyhow::Result<()> {
        // As `ByRepo` does it, and for the same reason.
        self.ttl += 1_000;
        let mut renew = self.connection.prepare_cached(&self.renew)?;
        ensure!(renew.execute(params![*name, *holder, self.ttl])? == 1, "it is ours");
        Ok(())
    }
}

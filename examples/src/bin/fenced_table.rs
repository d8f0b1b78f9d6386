//! A fenced write to a table: it is committed by the present holder of the lease, or not at all.
//!
//! `fenced_table URL`, in the PostgreSQL database that also keeps the leases. The lease alone stops a holder that is late
//! *nearly* always. It can't stop one that was paused between its look at the lease and its write. The fence, in the
//! write's own transaction, does.
#![allow(clippy::print_stdout, reason = "to be looked at")]

use std::env;
use std::error::Error;
use std::time::Duration;

use diesel::sql_query;
use diesel::sql_types::BigInt;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use lease_core::{Held, Lease, Wait};
use lease_postgres::PostgresRepo;
use lease_postgres::fence::{self, FenceError};

const TTL: Duration = Duration::from_secs(60);

/// `written_under` is for those who read. Where the leases are in another database it is also the fence: with
/// `AND written_under <= $1` in the update, one that finds no row was late.
const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS counter (id int PRIMARY KEY, value bigint NOT NULL, written_under bigint NOT NULL);
                     INSERT INTO counter VALUES (1, 0, 0) ON CONFLICT DO NOTHING";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).ok_or("usage: fenced_table URL")?;
    let repo = PostgresRepo::connect(&url).await?;
    repo.migrate().await?;
    let mut connection = AsyncPgConnection::establish(&url).await?;
    connection.batch_execute(TABLE).await?;

    let lease = Lease::new(repo);
    let guard = lease.acquire("counter", TTL, Wait::Forever).await?;
    println!("held with token {}", guard.held().token());
    let mut beat = tokio::time::interval(Duration::from_millis(50));
    loop {
        beat.tick().await;
        match count(&mut connection, guard.held()).await {
            Ok(()) => {}
            Err(error @ FenceError::Stale { .. }) => {
                println!("refused: {error}");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The check comes first, and nobody takes the lease over until the commit: so keep the transaction short.
async fn count(connection: &mut AsyncPgConnection, held: &Held) -> Result<(), FenceError> {
    connection
        .transaction(async |connection| {
            fence::check(connection, held).await?;
            sql_query("UPDATE counter SET value = value + 1, written_under = $1 WHERE id = 1")
                .bind::<BigInt, _>(held.token().get())
                .execute(connection)
                .await?;
            Ok(())
        })
        .await
}

//! Locks the row of the lease `held`, or on SQLite the file, between its two gates: who loses must not notice.

use std::process::ExitCode;

use anyhow::bail;
use bench_harness::{Gate, finish};
use clap::Parser;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use tokio_postgres::NoTls;

/// What it is told.
#[derive(Debug, Parser)]
struct Args {
    /// `postgres`, `mysql` or `sqlite`.
    engine: String,
    /// The server's URL, or the path of a file.
    #[arg(long, env = "BENCH_URL", hide_env_values = true)]
    url: String,
}

const LOCK: &str = "SELECT name FROM task_leases WHERE name = 'held' FOR UPDATE";

fn main() -> ExitCode {
    finish(block(&Args::parse()))
}

fn block(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let mut gate = Gate::default();
    runtime.block_on(async {
        match args.engine.as_str() {
            "postgres" => {
                let (client, connection) = tokio_postgres::connect(&args.url, NoTls).await?;
                tokio::spawn(async move { drop(connection.await) });
                gate.begin()?;
                client.batch_execute(&format!("BEGIN; {LOCK}")).await?;
                gate.end()?;
                client.batch_execute("ROLLBACK").await?;
            }
            "mysql" => {
                let mut connection = Conn::new(Opts::from_url(&args.url)?).await?;
                gate.begin()?;
                connection.query_drop("BEGIN").await?;
                connection.query_drop(LOCK).await?;
                gate.end()?;
                connection.query_drop("ROLLBACK").await?;
            }
            "sqlite" => {
                let connection = rusqlite::Connection::open(&args.url)?;
                gate.begin()?;
                connection.execute_batch("BEGIN IMMEDIATE")?;
                gate.end()?;
                connection.execute_batch("ROLLBACK")?;
            }
            other => bail!("{other} is no engine here"),
        }
        Ok(())
    })
}

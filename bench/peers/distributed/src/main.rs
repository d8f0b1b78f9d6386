//! The lock managers of `distributed`, which keep a row in a table, and `PgAdvisoryLock` of sqlx, which lasts as long as its session.

mod advisory;
mod rows;

use std::process::ExitCode;

use anyhow::bail;
use bench_harness::{Args, Outcome, finish, run};
use clap::Parser;
use distributed::lock::{PostgresLockManager, SqliteLockManager};

fn main() -> ExitCode {
    finish(who(&Args::parse()))
}

fn who(args: &Args) -> anyhow::Result<Outcome> {
    match args.who.as_str() {
        "postgres" => run::<rows::Rows<PostgresLockManager>>(args),
        "sqlite" => run::<rows::Rows<SqliteLockManager>>(args),
        "sqlx-advisory" => run::<advisory::Advisory>(args),
        other => bail!("{other} is nobody here"),
    }
}

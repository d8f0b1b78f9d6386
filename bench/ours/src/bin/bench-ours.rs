//! This project and the bare statements: `bench-ours WHO --url URL pairs --clients 8 --seconds 3`.

use std::process::ExitCode;

use anyhow::bail;
use bench_harness::{Args, Outcome, finish, run};
use bench_ours::bare::{BareMysql, BarePostgres, BareSqlite};
use bench_ours::{ByHop, ByLease, ByRepo};
use clap::Parser;
use lease_mysql::MysqlRepo;
use lease_postgres::PostgresRepo;
use lease_sqlite::SqliteRepo;

fn main() -> ExitCode {
    finish(who(&Args::parse()))
}

fn who(args: &Args) -> anyhow::Result<Outcome> {
    match args.who.as_str() {
        "postgres" => run::<ByLease<PostgresRepo>>(args),
        "postgres-hop" => run::<ByHop<PostgresRepo>>(args),
        "postgres-repo" => run::<ByRepo<PostgresRepo>>(args),
        "postgres-bare" => run::<BarePostgres>(args),
        "mysql" => run::<ByLease<MysqlRepo>>(args),
        "mysql-hop" => run::<ByHop<MysqlRepo>>(args),
        "mysql-repo" => run::<ByRepo<MysqlRepo>>(args),
        "mysql-bare" => run::<BareMysql>(args),
        "sqlite" => run::<ByLease<SqliteRepo>>(args),
        "sqlite-hop" => run::<ByHop<SqliteRepo>>(args),
        "sqlite-repo" => run::<ByRepo<SqliteRepo>>(args),
        "sqlite-bare" => run::<BareSqlite>(args),
        other => bail!("{other} is nobody here"),
    }
}

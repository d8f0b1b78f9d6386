//! The floor: our statements in a bare loop of the driver, one connection for each client, without pool, time limits, retries or
//! any thought of what an answer means.

mod mysql;
mod postgres;
mod sqlite;
mod statement;

pub use mysql::BareMysql;
pub use postgres::BarePostgres;
pub use sqlite::BareSqlite;
pub use statement::{MYSQL, POSTGRES, SQLITE, Text};

/// A holder string as long as ours are.
fn holder(count: u64) -> String {
    format!("bare-host-{}/{count:016x}", std::process::id())
}

use std::error::Error;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row, Value};

use super::Dialect;
use crate::servers::admin::Admin;
use crate::servers::{ServerError, blocking};

/// What our sessions have, whatever a test made the server's defaults.
const SESSION: &str = "SET SESSION autocommit = 1, sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', \
    lock_wait_timeout = 60, innodb_lock_wait_timeout = 50";

/// Isolation and access mode have names that differ, but a statement in common.
const TRANSACTIONS: &str = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE";

/// Errors of a server that is on its way up or down: `ER_SERVER_SHUTDOWN`, and a Galera node that is not in a cluster.
const PASSING: [u16; 2] = [1053, 1047];

/// The database of the server's own tables, which is always there.
pub(super) const SYSTEM: &str = "mysql";

/// How we log in to a server ourselves.
#[derive(Clone, Debug)]
pub(super) struct MysqlAdmin {
    pub(super) dialect: Dialect,
    opts: Opts,
}

impl MysqlAdmin {
    pub(super) fn new(dialect: Dialect, url: &str) -> Result<Self, ServerError> {
        let opts = Opts::from_url(url).map_err(ServerError::sql("understand the URL"))?;
        let opts = OptsBuilder::from_opts(opts)
            .prefer_socket(false)
            .tcp_nodelay(true)
            // Told here, so that it is not asked for on each connection.
            .max_allowed_packet(Some(16 * 1024 * 1024))
            .wait_timeout(Some(600))
            .init(vec![SESSION, TRANSACTIONS]);
        Ok(Self {
            dialect,
            opts: opts.into(),
        })
    }

    /// The same, in another database.
    pub(super) fn within(&self, database: &str) -> Self {
        let opts = OptsBuilder::from_opts(self.opts.clone()).db_name(Some(database));
        Self {
            dialect: self.dialect,
            opts: opts.into(),
        }
    }
}

impl MysqlAdmin {
    /// One of the server's own counters.
    pub(super) fn status(&self, name: &str, limit: Duration) -> Result<Option<u64>, ServerError> {
        let text = format!("SHOW GLOBAL STATUS LIKE '{name}'");
        let values = blocking::talk("read a counter", limit, ask(self.opts.clone(), text, 1))?;
        Ok(values.first().and_then(|value| value.parse().ok()))
    }
}

impl Admin for MysqlAdmin {
    fn engine(&self) -> &'static str {
        self.dialect.name()
    }

    /// A node outside of its cluster answers what needs no table.
    fn probe(&self) -> &'static str {
        "SELECT 1 FROM mysql.user LIMIT 1"
    }

    fn sql(&self, text: &str, step: &'static str, limit: Duration) -> Result<Vec<String>, ServerError> {
        blocking::talk(step, limit, ask(self.opts.clone(), text.to_owned(), 0))
    }

    fn may_pass(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool {
        match error.downcast_ref() {
            Some(mysql_async::Error::Io(_)) => true,
            Some(mysql_async::Error::Server(error)) => PASSING.contains(&error.code),
            _ => false,
        }
    }
}

async fn ask(opts: Opts, text: String, column: usize) -> Result<Vec<String>, mysql_async::Error> {
    let mut session = Conn::new(opts).await?;
    let answer = columns(&mut session, &text, column).await;
    // A session lingers in the server's list for a moment after its end. It must not count among a database's.
    let _ = session.query_drop(format!("USE {SYSTEM}")).await;
    let _ = session.disconnect().await;
    answer
}

async fn columns(session: &mut Conn, text: &str, column: usize) -> Result<Vec<String>, mysql_async::Error> {
    let mut values = Vec::new();
    let mut result = session.query_iter(text).await?;
    while !result.is_empty() {
        let rows: Vec<Row> = result.collect().await?;
        values.extend(rows.iter().filter_map(|row| row.as_ref(column)).map(text_of));
    }
    // A statement that is not the first has its error kept until now.
    result.drop_result().await?;
    Ok(values)
}

/// Text is what the server sends for all types; null is empty.
fn text_of(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

//! [`diagnose`](MysqlRepo::diagnose): what a server is like, before it matters.

use std::collections::HashMap;
use std::time::Duration;

use diesel::sql_types::{BigInt, Text};
use lease_core::{BootClock, Clock, ClockReading, DbTime, Finding, Operation, RepoError, RepoErrorKind};
use lease_diesel::{Failure, Subject, Task};

use crate::MysqlRepo;
use crate::code::{Meaning, of_statement};
use crate::engine::{Mysql, Session};
use crate::error::number;
use crate::session::Settings;
use crate::sql::{Statement, Value, now, only, statement, us};
use crate::table::Table;

mod judge;

use judge::{Encryption, Server};

/// How long it may take, the second in which the clocks are compared included.
const LIMIT: Duration = Duration::from_secs(15);

statement! {
    /// Database, empty for none; user; from where he came.
    Place -> (Text, Text, Text):
    "SELECT CAST(COALESCE(DATABASE(), '') AS CHAR), CAST(CURRENT_USER() AS CHAR), ",
    "CAST(SUBSTRING_INDEX(USER(), '@', -1) AS CHAR)",
}

statement! {
    /// Settings as the session has them. Those that an engine or version lacks have no row.
    Variables -> (Text, Text):
    "SHOW VARIABLES WHERE Variable_name IN ('version', 'version_comment', 'transaction_isolation', 'tx_isolation', ",
    "'transaction_read_only', 'tx_read_only', 'read_only', 'super_read_only', 'innodb_read_only', 'sql_mode', 'time_zone', ",
    "'autocommit', 'init_connect', 'innodb_lock_wait_timeout', 'sysdate_is_now', 'log_bin', 'binlog_format', 'sync_binlog', ",
    "'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'max_connections', 'wsrep_on', 'wsrep_sync_wait')",
}

statement! {
    /// What the session and the server count and say of themselves.
    Statuses -> (Text, Text):
    "SHOW STATUS WHERE Variable_name IN ('Ssl_version', 'Threads_connected', 'wsrep_ready', 'wsrep_cluster_status', ",
    "'wsrep_cluster_size', 'wsrep_local_state_comment')",
}

statement! {
    /// How many triggers the table has that this user may see: database, empty for the connection's, and table.
    Triggers -> (BigInt):
    "SELECT COUNT(*) FROM information_schema.triggers ",
    "WHERE event_object_schema = COALESCE(NULLIF(CAST($1 AS CHAR), ''), DATABASE()) AND event_object_table = CAST($2 AS CHAR)",
}

statement! {
    /// The server's clock.
    ServerClock -> (BigInt):
    "SELECT ", us!(now!()),
}

// Statements that find no row, and need the right that they are called after.

statement! {
    /// The right to select.
    MaySelect -> (BigInt):
    "SELECT 1 FROM task_leases WHERE 1 = 0",
}

statement! {
    /// The right to insert.
    MayInsert -> (BigInt):
    "INSERT INTO task_leases (name, holder, token, acquired_at, expires_at, released_at, note) ",
    "SELECT '', '', 0, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), NULL, NULL FROM (SELECT 1 AS one) o WHERE 1 = 0",
}

statement! {
    /// The right to update, and to read what that needs.
    MayUpdate -> (BigInt):
    "UPDATE task_leases SET token = token + 1, holder = '', acquired_at = UTC_TIMESTAMP(6), expires_at = UTC_TIMESTAMP(6), ",
    "released_at = NULL, note = NULL WHERE name = '' AND 1 = 0",
}

statement! {
    /// The right to delete.
    MayDelete -> (BigInt):
    "DELETE FROM task_leases WHERE name = '' AND 1 = 0",
}

impl MysqlRepo {
    /// Looks at all that leases hang on, for an operator: the server, the way to it, its clock, the table, grants, durability, the
    /// state of a Galera node. It changes nothing.
    ///
    /// On a connection of its own, which it keeps for about a second to compare the server's clock with this machine's. Whether
    /// replicas follow the server is not among it, since an ordinary user may not see that.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect), and `Timeout` after 15 seconds. Whatever else is wrong is a [`Finding`].
    ///
    /// # Cancelling
    /// It changes nothing.
    pub async fn diagnose(&self) -> Result<Vec<Finding>, RepoError> {
        let settings = self.source.settings().map(AsRef::as_ref);
        let task = Diagnosing {
            is_own: settings.is_some(),
            is_near: settings.map(Settings::is_near),
            verifies: settings.map(Settings::verifies),
            delete_on_release: self.delete_on_release,
        };
        self.source.run_alone(&self.target, task, LIMIT).await
    }
}

struct Diagnosing {
    /// Whether the connection is by `connect`.
    is_own: bool,
    /// Whether the URL names this machine, if we know it.
    is_near: Option<bool>,
    /// Whether the server's certificate is verified, if we know.
    verifies: Option<bool>,
    delete_on_release: bool,
}

impl Task<Mysql> for Diagnosing {
    type Answer = Vec<Finding>;

    fn subject(&self) -> Subject {
        Subject::new(Operation::Inspect("diagnose"))
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Vec<Finding>, Failure> {
        let (database, user, came_from): (String, String, String) = only(session.rows(Place, &[]).await?)?;
        let variables: Vec<(String, String)> = session.rows(Variables, &[]).await?;
        let statuses: Vec<(String, String)> = session.rows(Statuses, &[]).await?;
        let all = variables.into_iter().chain(statuses);
        let server = Server(all.collect::<HashMap<_, _>>());
        let encryption = Encryption {
            protocol: Some(server.get("Ssl_version").to_owned()).filter(|protocol| !protocol.is_empty()),
            is_near: self
                .is_near
                .unwrap_or(matches!(came_from.as_str(), "localhost" | "127.0.0.1" | "::1")),
            verifies: self.verifies,
        };
        let mut findings = vec![
            Finding::ok("connection", format!("database {database} as user {user}")),
            server.version(),
            server.session(self.is_own),
            encryption.finding(),
        ];
        findings.extend(ClockReading::findings(&clock(session).await?));
        findings.extend([
            server.clock_source(),
            server.time_zone(),
            server.isolation(),
            server.writes(),
            server.replication(),
            server.durability(),
            server.connections(),
        ]);
        findings.extend(server.galera(self.is_own));
        findings.extend(self.table(session).await?);
        Ok(findings)
    }
}

impl Diagnosing {
    async fn table(&self, session: &mut Session<'_>) -> Result<Vec<Finding>, Failure> {
        let table = Table::look(session).await?;
        if !table.exists() {
            return Ok(vec![judge::no_table(session.target)]);
        }
        let mut findings = judge::schema(&table);
        let which = [
            Value::Text(session.target.database()),
            Value::Text(session.target.table()),
        ];
        let (triggers,): (i64,) = only(session.rows(Triggers, &which).await?)?;
        findings.push(judge::hooks(triggers));
        let mut missing = Vec::new();
        for (right, lacks) in [
            ("SELECT", lacks(session, MaySelect).await?),
            ("INSERT", lacks(session, MayInsert).await?),
            ("UPDATE", lacks(session, MayUpdate).await?),
            ("DELETE", lacks(session, MayDelete).await?),
        ] {
            if lacks {
                missing.push(right);
            }
        }
        findings.push(judge::privileges(&missing, self.delete_on_release, session.target));
        Ok(findings)
    }
}

/// Whether the user lacks the right to a statement that does nothing. Whatever else is wrong with it is told by other lines.
async fn lacks(session: &mut Session<'_>, statement: impl Statement) -> Result<bool, Failure> {
    let Err(error) = session.execute(statement, &[]).await else {
        return Ok(false);
    };
    let code = number(session, &error).await.map_err(|_| error)?;
    Ok(code.map(of_statement) == Some(Meaning::Kind(RepoErrorKind::Denied)))
}

/// Reads the server's clock for about a second.
async fn clock(session: &mut Session<'_>) -> Result<Vec<ClockReading>, Failure> {
    // The first time it is also prepared.
    let _: Vec<(i64,)> = session.rows(ServerClock, &[]).await?;
    let mut readings = Vec::new();
    for _ in 0..ClockReading::COUNT {
        let asked = BootClock.now();
        let (micros,): (i64,) = only(session.rows(ServerClock, &[]).await?)?;
        readings.push(ClockReading::answered(asked, DbTime::from_micros(micros)));
        BootClock.sleep_until(asked + ClockReading::EVERY).await;
    }
    Ok(readings)
}

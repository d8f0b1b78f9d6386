//! [`diagnose`](PostgresRepo::diagnose): what a server is like, before it matters.

use std::time::Duration;

use diesel::sql_types::{BigInt, Bool, Nullable, Text};
use lease_core::{BootClock, Clock, ClockReading, DbTime, Finding, Operation, RepoError};
use lease_diesel::{Failure, Subject, Task};

use crate::PostgresRepo;
use crate::engine::{Postgres, Session};
use crate::error::probe;
use crate::session::Settings;
use crate::sql::{clock_us, first, only, statement};
use crate::table::Table;

mod judge;

use judge::{Access, Connections, Durability, Encryption, Replication, Server, Way};

/// How long it may take, the second in which the clocks are compared included.
const LIMIT: Duration = Duration::from_secs(15);

statement! {
    /// Version as text and as number, database, role, time zone, default isolation level.
    ServerFacts -> (Text, BigInt, Text, Text, Text, Text):
    "SELECT current_setting('server_version'), current_setting('server_version_num')::bigint, current_database()::text, ",
    "current_user::text, current_setting('TimeZone'), current_setting('default_transaction_isolation')",
}

statement! {
    /// Whether the options of our start were heard, `statement_timeout` and `enable_seqscan`.
    WayFacts -> (Bool, Text, Text):
    "SELECT COALESCE(current_setting('lease.session', true), '') <> '', current_setting('statement_timeout'), ",
    "current_setting('enable_seqscan')",
}

statement! {
    /// Whether the session is encrypted, by which protocol, and whether it came by a socket or from the server's own address.
    EncryptionFacts -> (Bool, Text, Bool):
    "SELECT COALESCE(s.ssl, false), COALESCE(s.version, ''), ",
    "inet_client_addr() IS NOT DISTINCT FROM inet_server_addr() ",
    "FROM (SELECT 1) one LEFT JOIN pg_stat_ssl s ON s.pid = pg_backend_pid()",
}

statement! {
    /// Whether it is a standby, takes no writes, and waits for which standbys; how many follow it, how many of these in sync,
    /// and of how many we may not know.
    ReplicationFacts -> (Bool, Bool, Text, BigInt, BigInt, BigInt):
    "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::bool, ",
    "current_setting('synchronous_standby_names'), count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), ",
    "count(*) FILTER (WHERE sync_state IS NULL) FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup'",
}

statement! {
    /// What a commit waits for.
    DurabilityFacts -> (Text, Text, Text):
    "SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')",
}

statement! {
    /// How many more sessions there may be: of the server, of the database, of the role. The latter two are null without a
    /// limit.
    ConnectionFacts -> (BigInt, BigInt, Nullable<BigInt>, Nullable<BigInt>):
    "SELECT current_setting('max_connections')::bigint, ",
    "current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint ",
        "- COALESCE(current_setting('reserved_connections', true), '0')::bigint - count(*), ",
    "(SELECT d.datconnlimit FROM pg_database d WHERE d.datname = current_database() AND d.datconnlimit >= 0) ",
        "- count(*) FILTER (WHERE a.datname = current_database()), ",
    "(SELECT r.rolconnlimit FROM pg_roles r WHERE r.rolname = current_user AND r.rolconnlimit >= 0) ",
        "- count(*) FILTER (WHERE a.usename = current_user) ",
    // A session without a database is one of the server's own processes.
    "FROM pg_stat_activity a WHERE a.datid IS NOT NULL",
}

statement! {
    /// Collation of `name`, empty for bytes, with the database's for the default; then what may change or hide rows: policies,
    /// triggers, rules.
    TableFacts -> (Text, Bool, Bool, Bool):
    "SELECT COALESCE((SELECT CASE l.collname WHEN 'default' THEN ",
        "(SELECT d.datcollate::text FROM pg_database d WHERE d.datname = current_database()) ELSE l.collname::text END ",
        "FROM pg_attribute a JOIN pg_collation l ON l.oid = a.attcollation ",
        "WHERE a.attrelid = c.oid AND a.attname = 'name'), ''), ",
    "row_security_active(c.oid), ",
    "EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D'), ",
    "EXISTS (SELECT 1 FROM pg_rewrite w WHERE w.ev_class = c.oid AND w.rulename <> '_RETURN') ",
    "FROM pg_class c WHERE c.oid = to_regclass('task_leases')",
}

statement! {
    /// The server's clock.
    ServerClock -> (BigInt):
    "SELECT ", clock_us!(),
}

/// What every operation may need of the table.
const GRANTS: &str = "SELECT,INSERT,UPDATE,DELETE";

impl PostgresRepo {
    /// Looks at all that leases hang on, for an operator: the server, the way to it, its clock, the table, grants, durability,
    /// standbys. It changes nothing.
    ///
    /// On a connection of its own, which it keeps for about a second to compare the server's clock with this machine's.
    /// Checks that the role may not see into say so.
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
    /// Whether the URL names only this machine, if we know it.
    is_near: Option<bool>,
    /// Whether the server's certificate is verified, if we know.
    verifies: Option<bool>,
    delete_on_release: bool,
}

impl Task<Postgres> for Diagnosing {
    type Answer = Vec<Finding>;

    fn subject(&self) -> Subject {
        Subject::new(Operation::Inspect("diagnose"))
    }

    async fn attempt(&mut self, session: &mut Session<'_>) -> Result<Vec<Finding>, Failure> {
        let (version, number, database, role, zone, isolation) = only(session.rows(ServerFacts, &[]).await?)?;
        let server = Server {
            version,
            number,
            database,
            role,
            zone,
            isolation,
        };
        let (is_marked, statement_timeout, enable_seqscan) = only(session.rows(WayFacts, &[]).await?)?;
        let way = Way {
            is_own: self.is_own,
            is_marked,
            statement_timeout,
            enable_seqscan,
        };
        let (encrypted, protocol, came_from_here) = only(session.rows(EncryptionFacts, &[]).await?)?;
        let encryption = Encryption {
            protocol: Some(protocol).filter(|_| encrypted),
            is_near: self.is_near.unwrap_or(came_from_here),
            verifies: self.verifies,
        };
        let (standby, read_only, waits_for, followers, in_sync, unknown) =
            only(session.rows(ReplicationFacts, &[]).await?)?;
        let replication = Replication {
            standby,
            read_only,
            waits_for,
            followers,
            in_sync,
            unknown,
        };
        let (fsync, full_page_writes, synchronous_commit) = only(session.rows(DurabilityFacts, &[]).await?)?;
        let durability = Durability {
            fsync,
            full_page_writes,
            synchronous_commit,
        };
        let (most, of_server, of_database, of_role): (i64, i64, Option<i64>, Option<i64>) =
            only(session.rows(ConnectionFacts, &[]).await?)?;
        let connections = Connections {
            most,
            left: [Some(of_server), of_database, of_role]
                .into_iter()
                .flatten()
                .min()
                .unwrap_or(of_server),
        };
        let mut findings = vec![
            server.connection(),
            server.version(),
            way.finding(),
            encryption.finding(),
        ];
        findings.extend(ClockReading::findings(&clock(session).await?));
        findings.extend([
            server.time_zone(),
            server.isolation(),
            replication.finding(),
            durability.finding(),
        ]);
        findings.push(connections.finding());
        findings.extend(self.table(session).await?);
        Ok(findings)
    }
}

impl Diagnosing {
    async fn table(&self, session: &mut Session<'_>) -> Result<Vec<Finding>, Failure> {
        let (_, found, out_of_reach, missing) = probe(session, GRANTS).await?;
        if !found {
            return Ok(vec![judge::no_table(session.target, out_of_reach)]);
        }
        let table = Table::look(session).await?;
        let mut findings = judge::schema(&table);
        let facts: Option<(String, bool, bool, bool)> = first(session.rows(TableFacts, &[]).await?);
        if let Some((collation, policies, triggers, rules)) = facts {
            findings.extend([judge::collation(&collation), judge::hooks(policies, triggers, rules)]);
        }
        let access = Access {
            missing,
            delete_on_release: self.delete_on_release,
        };
        findings.push(access.finding(session.target));
        Ok(findings)
    }
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

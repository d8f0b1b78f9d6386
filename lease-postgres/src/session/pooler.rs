//! Poolers: whether a session is ours alone and, if it is not, whether our prepared statements stay ours.
//!
//! In PgBouncer's transaction mode each transaction may run in another session of the server. If the pooler does not keep
//! track of prepared statements, a name of ours may there mean what another client prepared under it: a renewal could
//! execute another pod's release, without any error. So such a pooler is found out when a connection is opened, and not by
//! the errors that it causes most of the time.

use lease_diesel::{ConnectFailure, text};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, SimpleQueryMessage};

use super::failure;

/// What each session of our own is set to, as options of the start-up message: a pooler refuses or ignores these, while a
/// `SET` would go on to its other clients.
///
/// `statement_timeout` lies above the longest limit of the keeper (5 s, a release), so that it never ends a statement
/// that somebody waits for, but keeps abandoned ones from piling up in the server; `lock_timeout` gives a lock wait
/// back before. Without `enable_seqscan = off`, a plan that was cached while the table was small stays a sequential
/// scan when it has grown.
const SETTINGS: &str = "-c statement_timeout=6000 -c lock_timeout=5500 -c enable_seqscan=off";

/// A statement that only [`keeps_statements_apart`] prepares.
const PROBE: &str = "SELECT 'lease pooler check'";

/// The driver names the statements it prepares `s0`, `s1`.. in each process.
const AS_WE_NAMED_IT: &str = "^s[0-9]+$";

/// What one session is known by, if the options of its start were heard.
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn new() -> Self {
        Self(format!("{:016x}", fastrand::u64(..)))
    }

    /// The same place to connect to, with our options after those of the URL.
    pub(super) fn on(&self, host: &Config) -> Config {
        let mut marked = host.clone();
        let given = host.get_options().unwrap_or_default();
        marked.options(format!("{given} {SETTINGS} -c lease.session={}", self.0).trim_start());
        marked
    }
}

/// Whether it was a pooler that refused our options, which PostgreSQL knows.
pub(super) fn refused_options(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::PROTOCOL_VIOLATION)
}

/// Whether the session is ours alone. Fails if neither that is so nor the pooler keeps prepared statements apart. One round
/// trip unless there is a pooler.
pub(super) async fn check(client: &Client, mark: &Mark) -> Result<bool, ConnectFailure> {
    let ours = "SELECT current_setting('lease.session', true)";
    let ours = column(client, ours).await.map_err(failure)?;
    if ours == [mark.0.as_str()] {
        return Ok(true);
    }
    match keeps_statements_apart(client).await {
        Ok(true) => Ok(false),
        Ok(false) => Err(refused()),
        Err(error) if tells_of_a_pooler(&error) => Err(refused()),
        Err(error) => Err(failure(error)),
    }
}

/// Prepares a statement and looks by which name the server knows it: a pooler that keeps track gives it another, which is
/// the same for all its clients that prepare this text.
async fn keeps_statements_apart(client: &Client) -> Result<bool, tokio_postgres::Error> {
    // In one transaction all is said to one session.
    client.batch_execute("BEGIN").await?;
    let prepared = client.prepare(PROBE).await;
    let names = format!(
        "SELECT name ~ '{AS_WE_NAMED_IT}' FROM pg_prepared_statements WHERE statement = '{}'",
        PROBE.replace('\'', "''")
    );
    let names = match prepared {
        Ok(_kept_until_we_looked) => column(client, &names).await,
        Err(error) => Err(error),
    };
    client.batch_execute("ROLLBACK").await?;
    let names = names?;
    Ok(!names.is_empty() && names.iter().all(|as_we_named_it| as_we_named_it == "f"))
}

/// That our name is taken, or unknown, or that there can be no transaction.
fn tells_of_a_pooler(error: &tokio_postgres::Error) -> bool {
    let tells = [
        SqlState::DUPLICATE_PSTATEMENT,
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::PROTOCOL_VIOLATION,
    ];
    error.code().is_some_and(|code| tells.contains(code))
}

fn refused() -> ConnectFailure {
    ConnectFailure {
        kind: lease_core::RepoErrorKind::Config,
        source: text(
            "the URL leads to a connection pooler that does not keep prepared statements apart: PgBouncer must be 1.21 or \
             newer, in transaction mode, with `max_prepared_statements` above 0; or connect to the server itself",
        ),
    }
}

/// The first column of what a text answers with, without anything being prepared.
async fn column(client: &Client, query: &str) -> Result<Vec<String>, tokio_postgres::Error> {
    let messages = client.simple_query(query).await?;
    Ok(messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
            _ => None,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_options_come_after_those_of_the_url() {
        let mark = Mark("7".to_owned());
        for (url, options) in [
            (
                "host=h",
                "-c statement_timeout=6000 -c lock_timeout=5500 -c enable_seqscan=off -c lease.session=7",
            ),
            (
                "host=h options='-c work_mem=1MB'",
                "-c work_mem=1MB -c statement_timeout=6000 -c lock_timeout=5500 -c enable_seqscan=off -c lease.session=7",
            ),
        ] {
            let marked = mark.on(&url.parse().unwrap());
            assert_eq!(marked.get_options(), Some(options));
        }
    }
}

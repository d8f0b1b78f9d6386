//! [`Mysql`]: what `lease-diesel` must know of this server.

use diesel::result::{Error, QueryResult};
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::{AsyncMysqlConnection, SimpleAsyncConnection};
use lease_diesel::{ConnectFailure, Engine, Subject, Verdict};

use crate::error::explain;
use crate::session::Settings;
use crate::sql::{self, Value};
use crate::target::Target;

/// Where the connections of a repo come from.
pub(crate) type Source = lease_diesel::Source<Mysql>;

/// A connection, and the table that its statements are about.
pub(crate) type Session<'a> = lease_diesel::Session<'a, Mysql>;

/// MySQL and MariaDB, through mysql_async. A connection that has died is not noticed in the pool.
pub(crate) struct Mysql;

/// Whether the session has `autocommit = 0`, which is not ours to change: then each statement is committed on its own.
#[derive(Clone, Copy, Default)]
pub(crate) struct CommitsByHand(bool);

impl Engine for Mysql {
    const REPO: &'static str = "MysqlRepo";

    type Connection = AsyncMysqlConnection;
    type Manager = AsyncDieselConnectionManager<AsyncMysqlConnection>;
    type Settings = Settings;
    type Target = Target;
    type Found = CommitsByHand;
    type Value<'a> = Value<'a>;

    async fn open(settings: &Settings) -> Result<AsyncMysqlConnection, ConnectFailure> {
        settings.open().await
    }

    /// If the session does not commit by itself, whoever had it before may have left a transaction open, which is rolled back as
    /// nobody can commit it any more: else it would be committed with ours.
    async fn find_out(connection: &mut AsyncMysqlConnection) -> QueryResult<CommitsByHand> {
        let target = Target::default();
        let mut session = Session {
            connection,
            target: &target,
            found: CommitsByHand(false),
        };
        let (autocommit,): (i64,) = sql::only(session.rows(sql::Autocommit, &[]).await?)?;
        session.found = CommitsByHand(autocommit == 0);
        roll_back(&mut session).await?;
        Ok(session.found)
    }

    fn rewrite(target: &Target, text: &str) -> Option<String> {
        target.rewrite(text)
    }

    async fn ended(session: &mut Session<'_>) -> QueryResult<()> {
        if session.found.0 {
            session.connection.batch_execute("COMMIT").await?;
        }
        Ok(())
    }

    async fn explain(session: &mut Session<'_>, subject: &Subject, error: Error) -> Verdict {
        explain(session, subject, error).await
    }
}

/// Ends what a failed statement may have left open, where the session does not do it by itself.
pub(crate) async fn roll_back(session: &mut Session<'_>) -> QueryResult<()> {
    if session.found.0 {
        session.connection.batch_execute("ROLLBACK").await?;
    }
    Ok(())
}

//! [`Postgres`]: what `lease-diesel` must know of this server.

use diesel::result::{Error, QueryResult};
use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use lease_diesel::{ConnectFailure, Engine, Subject, Verdict};

use crate::error::explain;
use crate::session::Settings;
use crate::sql::Value;
use crate::target::Target;

/// Where the connections of a repo come from.
pub(crate) type Source = lease_diesel::Source<Postgres>;

/// A connection, and the table that its statements are about.
pub(crate) type Session<'a> = lease_diesel::Session<'a, Postgres>;

/// PostgreSQL, through tokio-postgres. A connection that has died is noticed in the pool.
pub(crate) struct Postgres;

impl Engine for Postgres {
    const REPO: &'static str = "PostgresRepo";

    type Connection = AsyncPgConnection;
    type Manager = AsyncDieselConnectionManager<AsyncPgConnection>;
    type Settings = Settings;
    type Target = Target;
    type Found = ();
    type Value<'a> = Value<'a>;

    async fn open(settings: &Settings) -> Result<AsyncPgConnection, ConnectFailure> {
        settings.open().await
    }

    async fn find_out(_: &mut AsyncPgConnection) -> QueryResult<()> {
        Ok(())
    }

    fn rewrite(target: &Target, text: &str) -> Option<String> {
        target.rewrite(text)
    }

    async fn ended(_: &mut Session<'_>) -> QueryResult<()> {
        Ok(())
    }

    async fn explain(session: &mut Session<'_>, subject: &Subject, error: Error) -> Verdict {
        explain(session, subject, error).await
    }
}

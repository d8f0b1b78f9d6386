use std::error::Error;
use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

use super::ENGINE;
use crate::servers::admin::Admin;
use crate::servers::{ServerError, blocking};

/// How we connect ourselves, also to a server that a test has made read-only.
pub(super) fn admin(url: &str) -> Result<Config, ServerError> {
    let parsed: Result<Config, _> = url.parse();
    let mut config = parsed.map_err(ServerError::sql("understand the URL"))?;
    config
        .options("-c default_transaction_read_only=off")
        .application_name("lease-testkit");
    Ok(config)
}

impl Admin for Config {
    fn engine(&self) -> &'static str {
        ENGINE
    }

    fn sql(&self, text: &str, step: &'static str, limit: Duration) -> Result<Vec<String>, ServerError> {
        blocking::talk(step, limit, ask(self.clone(), text.to_owned()))
    }

    fn may_pass(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool {
        let error = error.downcast_ref::<tokio_postgres::Error>();
        let code = error.and_then(tokio_postgres::Error::code);
        code.is_none_or(|code| *code == SqlState::CANNOT_CONNECT_NOW)
    }
}

async fn ask(config: Config, text: String) -> Result<Vec<String>, tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    let io = tokio::spawn(connection);
    let answer = client.simple_query(&text).await;
    // Ended here and now: a connection that lingers would count in a test's view of its server.
    drop(client);
    let _ = io.await;
    let rows = answer?.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    });
    Ok(rows.collect())
}

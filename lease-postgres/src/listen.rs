//! [`Listener`]: one connection on which PostgreSQL tells which leases were released.
//!
//! All who wait on a repo share it. It is opened when the first of them waits, opened anew when it is lost, and closed when
//! nobody has waited for a while. What it hears is a hint and no proof: whoever waits polls all the same.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use lease_core::LeaseName;
use lease_diesel::pause;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, SimpleQueryMessage};

use crate::session::{Settings, Undriven};
use crate::target::Target;

mod waiting;

use waiting::Waiting;

/// How often the server is asked for a sign of life, and who waits is counted. After two rounds without anybody the
/// connection is closed.
const ROUND: Duration = Duration::from_secs(5);
/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(5);
/// The longest pause before the connection is opened again for the first time, and before any further time.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Which table, in a way that has no two spellings.
const NUMBER: &str = "SELECT to_regclass('task_leases')::oid";

/// Listens while somebody waits. A clone listens on its own. Dropped, it closes its connection.
#[derive(Default)]
pub(crate) struct Listener(Arc<Waiting>);

impl Listener {
    /// Resolves when the lease was released, or may have been while nobody listened.
    ///
    /// The connection is driven by the runtime on which somebody is the first to wait. Outside one, and behind a pooler, this never
    /// resolves.
    pub(crate) async fn freed(&self, settings: &Arc<Settings>, target: &Target, name: &LeaseName) {
        let Ok(runtime) = Handle::try_current() else {
            return pending().await;
        };
        let place = self.0.enter(name, || {
            let (waiting, settings, target) = (self.0.clone(), settings.clone(), target.clone());
            runtime.spawn(async move { listen(&waiting, &settings, &target).await })
        });
        match place {
            Some(place) => place.told().await,
            None => pending().await,
        }
    }
}

impl Clone for Listener {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Why a connection was left.
enum End {
    /// Nobody waits any more.
    Unused,
    /// What is told reaches a session of the server that is another client's by then.
    Pooler,
    /// It broke, or never listened.
    Lost,
}

async fn listen(waiting: &Waiting, settings: &Settings, target: &Target) {
    let (mut longest, most) = PAUSES;
    loop {
        match hear(waiting, settings, target).await {
            End::Unused => return,
            End::Pooler => {
                tracing::warn!(
                    "notify is of no use to who waits for a lease here, since the URL leads to a connection pooler: they poll"
                );
                return waiting.never_hears();
            }
            End::Lost => {}
        }
        if waiting.heard() {
            longest = PAUSES.0;
        }
        pause(longest).await;
        longest = (longest * 2).min(most);
        if waiting.is_over() {
            return;
        }
    }
}

/// Opens a connection and listens until it ends.
async fn hear(waiting: &Waiting, settings: &Settings, target: &Target) -> End {
    let opened = match settings.open_undriven().await {
        Ok(opened) => opened,
        Err(error) => {
            tracing::debug!(%error, "no connection to listen on");
            return End::Lost;
        }
    };
    let Undriven {
        client,
        mut connection,
        is_ours_alone,
    } = opened;
    if !is_ours_alone {
        return End::Pooler;
    }
    let mut talk = pin!(talk(&client, waiting, target));
    loop {
        let message = tokio::select! {
            biased;
            message = poll_fn(|context| connection.poll_message(context)) => message,
            end = &mut talk => return end,
        };
        match message {
            Some(Ok(AsyncMessage::Notification(told))) => waiting.tell(told.payload()),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, "the connection to listen on is lost");
                return End::Lost;
            }
            None => return End::Lost,
        }
    }
}

/// Our side of the connection: begins to listen, and then looks round by round whether the server is there, the table is the
/// same, and somebody waits.
async fn talk(client: &Client, waiting: &Waiting, target: &Target) -> End {
    let Some(number) = within(number(client, target)).await else {
        return End::Lost;
    };
    let listen = format!("LISTEN lease_{number}");
    if within(async { client.batch_execute(&listen).await.ok() })
        .await
        .is_none()
    {
        return End::Lost;
    }
    waiting.hears();
    loop {
        pause(ROUND).await;
        if waiting.is_over() {
            return End::Unused;
        }
        if within(self::number(client, target)).await.as_ref() != Some(&number) {
            return End::Lost;
        }
    }
}

/// The number of the table, if it is there.
async fn number(client: &Client, target: &Target) -> Option<String> {
    let query = target.rewrite(NUMBER).unwrap_or_else(|| NUMBER.to_owned());
    let answer = client.simple_query(&query).await.ok()?;
    answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
}

async fn within<T>(answer: impl Future<Output = Option<T>>) -> Option<T> {
    timeout(LIMIT, answer).await.ok().flatten()
}

//! [`Engine`]: what differs from one kind of server to another.

use std::future::Future;

use deadpool::managed::Manager;
use diesel::result::{Error as DieselError, QueryResult};
use diesel_async::AnsiTransactionManager;
use diesel_async::pooled_connection::{PoolError, PoolableConnection};

use crate::{Backend, ConnectFailure, Parameter, Session, Subject, Verdict};

/// A kind of server, and how to talk to it.
pub trait Engine: Sized + Send + Sync + 'static {
    /// The type that an application gives its pool to, as errors call it.
    const REPO: &'static str;

    /// The driver's connection.
    type Connection: PoolableConnection<Backend: 'static, TransactionManager = AnsiTransactionManager> + 'static;
    /// Of an application's pool: `AsyncDieselConnectionManager<Self::Connection>`. It is named, since only for a given connection
    /// it is known that this one is a manager.
    type Manager: Manager<Type = Self::Connection, Error = PoolError>;
    /// Where and as whom to connect.
    type Settings: Send + Sync + 'static;
    /// Which table.
    type Target: Clone + Send + Sync + 'static;
    /// What was found out about a connection from a pool that is not ours. The default is what a connection of our own is like.
    type Found: Default + Copy + Send + Sync;
    /// A value for a statement.
    type Value<'a>: Parameter<Backend<Self>>;

    /// Opens a connection, driven by the runtime this is polled on, within [`CONNECT_LIMIT`](crate::CONNECT_LIMIT).
    fn open(settings: &Self::Settings) -> impl Future<Output = Result<Self::Connection, ConnectFailure>> + Send;

    /// A look at a connection from a pool that is not ours, before each task. An error means that it is dead.
    fn find_out(connection: &mut Self::Connection) -> impl Future<Output = QueryResult<Self::Found>> + Send;

    /// A text about the table `task_leases`, for this one; `None` for that very table.
    fn rewrite(target: &Self::Target, text: &str) -> Option<String>;

    /// What must follow each statement that succeeded.
    fn ended(session: &mut Session<'_, Self>) -> impl Future<Output = QueryResult<()>> + Send;

    /// Finds out what a failed statement means. Unless the verdict is [`Gone`](Verdict::Gone), or an error that says that the
    /// statement may have been executed, the session is sound afterwards and outside of any transaction.
    fn explain(
        session: &mut Session<'_, Self>,
        subject: &Subject,
        error: DieselError,
    ) -> impl Future<Output = Verdict> + Send;
}

//! [`Checkout`]: a connection in use, which never goes back to a pool with an answer still under way.

use std::sync::Arc;

use deadpool::managed::{Manager, Metrics, Object, Pool, RecycleError, RecycleResult};
use diesel_async::pooled_connection::PoolableConnection;
use diesel_async::{AnsiTransactionManager, TransactionManager};
use lease_core::{RepoError, RepoErrorKind};

use crate::error::{no_connection, text};
use crate::{ConnectFailure, Engine, Session, Subject};

/// The way to one connection.
pub(crate) enum Door<E: Engine> {
    Own(Pool<Opener<E>>),
    Foreign(Pool<E::Manager>),
    Open(Arc<E::Settings>),
}

impl<E: Engine> Door<E> {
    pub(crate) async fn enter(&self, subject: &Subject) -> Result<Checkout<E>, RepoError> {
        match self {
            Self::Own(pool) => {
                let got = pool.get().await;
                let object = got.map_err(|error| no_connection(subject, error, |failure| failure.error(subject)))?;
                Ok(Checkout::new(Connection::Own(object)))
            }
            Self::Foreign(pool) => loop {
                let got = pool.get().await;
                let unavailable = |error| subject.error(RepoErrorKind::Unavailable).with_source(error);
                let object = got.map_err(|error| no_connection(subject, error, unavailable))?;
                let mut checkout = Checkout::new(Connection::Foreign(object)).outside_a_transaction(subject)?;
                match E::find_out(checkout.connection()).await {
                    Ok(found) => {
                        checkout.found = found;
                        return Ok(checkout);
                    }
                    // It has died in the pool. Another one may live, a fresh one does.
                    Err(_) if checkout.was_used_before() => {}
                    Err(error) => {
                        let error = subject.error(RepoErrorKind::Unavailable).with_source(error);
                        return Err(error.never_executed());
                    }
                }
            },
            Self::Open(settings) => match E::open(settings).await {
                Ok(connection) => Ok(Checkout::new(Connection::Alone(Box::new(connection)))),
                Err(failure) => Err(failure.error(subject)),
            },
        }
    }
}

/// Opens the connections of a pool of our own. They are in boxes, since a pool moves what it keeps at every turn.
pub(crate) struct Opener<E: Engine>(pub(crate) Arc<E::Settings>);

impl<E: Engine> Manager for Opener<E> {
    type Type = Box<E::Connection>;
    type Error = ConnectFailure;

    async fn create(&self) -> Result<Box<E::Connection>, ConnectFailure> {
        Ok(Box::new(E::open(&self.0).await?))
    }

    /// Without a round trip. Not every driver notices so that a connection has died: see [`Verdict::Gone`](crate::Verdict::Gone).
    async fn recycle(&self, connection: &mut Box<E::Connection>, _: &Metrics) -> RecycleResult<ConnectFailure> {
        if connection.is_broken() {
            return Err(RecycleError::message("it is broken"));
        }
        Ok(())
    }
}

/// A connection in use. Dropped before it [ended in order](Self::ended_in_order), it never goes back to its pool.
pub(crate) struct Checkout<E: Engine> {
    connection: Option<Connection<E>>,
    found: E::Found,
}

enum Connection<E: Engine> {
    Own(Object<Opener<E>>),
    Foreign(Object<E::Manager>),
    Alone(Box<E::Connection>),
}

impl<E: Engine> Checkout<E> {
    fn new(connection: Connection<E>) -> Self {
        Self {
            connection: Some(connection),
            found: E::Found::default(),
        }
    }

    /// Gives a pooled connection back: no answer is under way on it.
    pub(crate) fn ended_in_order(mut self) {
        drop(self.connection.take());
    }

    /// Whether it was in the pool, where it may have died unnoticed.
    pub(crate) fn was_used_before(&self) -> bool {
        let metrics = match &self.connection {
            Some(Connection::Own(object)) => Object::metrics(object),
            Some(Connection::Foreign(object)) => Object::metrics(object),
            Some(Connection::Alone(_)) | None => return false,
        };
        metrics.recycle_count > 0
    }

    pub(crate) fn session<'a>(&'a mut self, target: &'a E::Target) -> Session<'a, E> {
        let found = self.found;
        Session {
            connection: self.connection(),
            target,
            found,
        }
    }

    fn connection(&mut self) -> &mut E::Connection {
        let connection = self.connection.as_mut();
        match connection.expect("a connection is given back only by what consumes the checkout") {
            Connection::Own(object) => object,
            Connection::Foreign(object) => object,
            Connection::Alone(connection) => connection,
        }
    }

    /// A connection that a foreign pool hands out inside a transaction would tie the lease to that one's fate.
    fn outside_a_transaction(mut self, subject: &Subject) -> Result<Self, RepoError> {
        let status = AnsiTransactionManager::transaction_manager_status_mut(self.connection());
        if matches!(status.transaction_depth(), Ok(None)) {
            return Ok(self);
        }
        self.ended_in_order();
        let reason = "the pool handed out a connection that is inside a transaction";
        Err(subject
            .error(RepoErrorKind::Config)
            .with_source(text(reason))
            .never_executed())
    }
}

impl<E: Engine> Drop for Checkout<E> {
    fn drop(&mut self) {
        match self.connection.take() {
            Some(Connection::Own(object)) => drop(Object::take(object)),
            Some(Connection::Foreign(object)) => drop(Object::take(object)),
            Some(Connection::Alone(_)) | None => {}
        }
    }
}

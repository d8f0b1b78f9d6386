//! [`Checkout`]: a connection in use, which never goes back to a pool with an answer still under way.

use std::sync::Arc;

use deadpool::managed::{Object, Pool};
use diesel_async::{AnsiTransactionManager, TransactionManager};
use lease_core::{RepoError, RepoErrorKind};

use crate::error::{no_connection, text};
use crate::{Engine, Session, Subject};

/// The way to one connection.
pub(crate) enum Door<E: Engine> {
    Own(Pool<E::Manager>),
    Foreign(Pool<E::Manager>),
    Open(Arc<E::Settings>),
}

impl<E: Engine> Door<E> {
    pub(crate) async fn enter(&self, subject: &Subject) -> Result<Checkout<E>, RepoError> {
        match self {
            Self::Own(pool) => out_of(pool, subject).await,
            Self::Foreign(pool) => loop {
                let mut checkout = out_of::<E>(pool, subject).await?.outside_a_transaction(subject)?;
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

async fn out_of<E: Engine>(pool: &Pool<E::Manager>, subject: &Subject) -> Result<Checkout<E>, RepoError> {
    let object = pool.get().await.map_err(|error| no_connection(subject, error))?;
    Ok(Checkout::new(Connection::Pooled(object)))
}

/// A connection in use. Dropped before it [ended in order](Self::ended_in_order), it never goes back to its pool.
pub(crate) struct Checkout<E: Engine> {
    connection: Option<Connection<E>>,
    found: E::Found,
}

enum Connection<E: Engine> {
    Pooled(Object<E::Manager>),
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
        matches!(&self.connection, Some(Connection::Pooled(object)) if Object::metrics(object).recycle_count > 0)
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
            Connection::Pooled(object) => object,
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
        if let Some(Connection::Pooled(object)) = self.connection.take() {
            drop(Object::take(object));
        }
    }
}

//! [`Session`]: a connection that knows its table.

use diesel::deserialize::FromSqlRow;
use diesel::expression::QueryMetadata;
use diesel::query_dsl::CompatibleType;
use diesel::result::QueryResult;
use diesel_async::{AsyncConnectionCore, RunQueryDsl};

use crate::statement::pieces_of;
use crate::{Bound, Engine, Statement};

/// The kind of SQL that an engine's connection speaks.
pub type Backend<E> = <<E as Engine>::Connection as AsyncConnectionCore>::Backend;

/// A connection, and the table that its statements are about.
pub struct Session<'a, E: Engine> {
    /// The driver's connection.
    pub connection: &'a mut E::Connection,
    /// Which table.
    pub target: &'a E::Target,
    /// What was found out about the connection.
    pub found: E::Found,
}

impl<E: Engine> Session<'_, E> {
    /// Runs a statement and reads all it answers.
    ///
    /// # Errors
    /// What the driver reports.
    pub async fn rows<S: Statement, T>(&mut self, statement: S, values: &[E::Value<'_>]) -> QueryResult<Vec<T>>
    where
        T: FromSqlRow<<S::Row as CompatibleType<T, Backend<E>>>::SqlType, Backend<E>> + Send + 'static,
        S::Row: CompatibleType<T, Backend<E>, SqlType: 'static>,
        Backend<E>: QueryMetadata<S::Row>,
    {
        let rows = match self.texts::<S>() {
            None => Bound::new(statement, values).load(self.connection).await,
            Some(texts) => Bound::with_texts(statement, values, texts).load(self.connection).await,
        }?;
        E::ended(self).await?;
        Ok(rows)
    }

    /// Runs a statement and answers how many rows it changed.
    ///
    /// # Errors
    /// What the driver reports.
    pub async fn execute<S: Statement>(&mut self, statement: S, values: &[E::Value<'_>]) -> QueryResult<usize> {
        let count = match self.texts::<S>() {
            None => Bound::new(statement, values).execute(self.connection).await,
            Some(texts) => {
                Bound::with_texts(statement, values, texts)
                    .execute(self.connection)
                    .await
            }
        }?;
        E::ended(self).await?;
        Ok(count)
    }

    /// The texts of a statement's pieces for another table than that which it names. `None` if it is that one.
    fn texts<S: Statement>(&self) -> Option<Vec<String>> {
        let pieces = pieces_of::<S, Backend<E>, E::Value<'_>>();
        pieces.iter().map(|piece| E::rewrite(self.target, piece.text)).collect()
    }
}

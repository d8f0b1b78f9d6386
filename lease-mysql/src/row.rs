//! [`Seen`]: a lease as a look without a lock shows it.

use lease_core::{Holder, LeaseName, Loss, RepoError, RepoErrorKind};
use lease_diesel::{Failure, Subject, text};

use crate::engine::Session;
use crate::sql::{self, Value::Text};
use crate::value::{left, lossy};

/// A row as a look at it without a lock shows it.
pub(crate) struct Seen {
    /// Its columns, or `None` if there is no row.
    pub(crate) row: Option<Row>,
    /// The token for the next grant.
    pub(crate) next_token: i64,
}

/// What an operation needs of it.
pub(crate) struct Row {
    pub(crate) token: i64,
    pub(crate) holder: Vec<u8>,
    /// How long it has to live, in microseconds; not above zero once it has expired.
    pub(crate) left_us: i64,
    pub(crate) released: bool,
}

impl Seen {
    pub(crate) async fn look(session: &mut Session<'_>, subject: &Subject, name: &LeaseName) -> Result<Self, Failure> {
        type Answer = (i64, Option<i64>, i64, Option<Vec<u8>>, Option<i64>, i64);
        let (found, token, next_token, holder, left_us, released): Answer =
            sql::only(session.rows(sql::Peek, &[Text(name.as_str())]).await?)?;
        let row = match Row::new(token, holder, left_us, released) {
            _ if found == 0 => None,
            Some(row) => Some(row),
            None => return Err(Row::error(subject).into()),
        };
        Ok(Self { row, next_token })
    }
}

const NULLS: &str = "the row has a null, or a time that is none, in holder, token or expires_at";

impl Row {
    /// `None` if there is a null where there must be none.
    pub(crate) fn new(
        token: Option<i64>,
        holder: Option<Vec<u8>>,
        left_us: Option<i64>,
        released: i64,
    ) -> Option<Self> {
        Some(Self {
            token: token?,
            holder: holder?,
            left_us: left_us?,
            released: released != 0,
        })
    }

    /// What is wrong then.
    pub(crate) fn error(subject: &Subject) -> RepoError {
        let error = subject.error(RepoErrorKind::SchemaMismatch);
        error.with_source(text(NULLS)).never_executed()
    }

    pub(crate) fn is_live(&self) -> bool {
        self.left_us > 0
    }

    /// Whether it is live, unreleased, and this holder's.
    pub(crate) fn is_held_by(&self, holder: &Holder) -> bool {
        self.is_live() && !self.released && self.holder == holder.as_str().as_bytes()
    }

    pub(crate) fn loss(&self, ours: &Holder) -> Loss {
        Loss::of_row(&lossy(&self.holder), ours, self.released, left(self.left_us))
    }
}

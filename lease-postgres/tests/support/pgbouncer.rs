//! PgBouncer in transaction mode before the shared server.

use std::sync::OnceLock;

use lease_testkit::servers::{Pooler, Postgres};

use super::Database;

/// The one of this process, as PgBouncer is by default since 1.24.
fn shared() -> &'static Pooler {
    static SHARED: OnceLock<Pooler> = OnceLock::new();
    SHARED.get_or_init(|| Pooler::before(Postgres::shared().unwrap(), &[("max_prepared_statements", "200")]).unwrap())
}

/// A database whose URL leads through the pooler.
pub(crate) fn database() -> Database {
    Database::empty().through(shared())
}

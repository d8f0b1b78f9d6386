use std::error::Error;
use std::time::Duration;

use super::ServerError;

/// How we log in to a server ourselves, as a superuser whom a test's settings of the server do not disturb.
pub(super) trait Admin {
    /// The engine, as its makers write it.
    fn engine(&self) -> &'static str;

    /// A statement that a server answers as soon as it can be used.
    fn probe(&self) -> &'static str {
        "SELECT 1"
    }

    /// Runs SQL text, of one statement or several, on a connection of its own, and returns the first column of its rows.
    fn sql(&self, text: &str, step: &'static str, limit: Duration) -> Result<Vec<String>, ServerError>;

    /// Whether the driver's error is one of a server that is still starting.
    fn may_pass(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool;
}

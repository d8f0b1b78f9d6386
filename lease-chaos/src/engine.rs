//! What worlds there are, and what they have in common.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

/// The ttl of every lease. A release may take 5 s, and as long may a place in the pool be taken by one that hangs: with a ttl of
/// less than half of that, the limit on recovery would be below what is promised.
pub(crate) const TTL: Duration = Duration::from_secs(3);
/// What is assumed of clocks within a ttl. Wider than the default of 30 ms: on a machine with more servers than cores a process
/// may wait that long for its turn in the middle of a poll, which nothing can promise to survive.
pub(crate) const DRIFT: Duration = Duration::from_millis(100);
/// How many pods a world has.
pub(crate) const PODS: usize = 3;
/// The leases that all pods want.
pub(crate) const SHARED: [&str; 2] = ["shared-1", "shared-2"];

/// The lease that only this pod wants, by which is seen that it is at work.
pub(crate) fn own(pod: usize) -> String {
    format!("own-{}", pod + 1)
}

/// All leases of a world.
pub(crate) fn names() -> Vec<String> {
    SHARED
        .iter()
        .map(|name| (*name).to_owned())
        .chain((0..PODS).map(own))
        .collect()
}

/// The servers of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Engine {
    /// One PostgreSQL server.
    Postgres,
    /// A PostgreSQL server and its standby.
    PostgresStandby,
    /// One MySQL server.
    Mysql,
    /// One MariaDB server.
    Mariadb,
    /// Three nodes of MariaDB with Galera. Each pod has a node of its own.
    Galera,
}

impl Engine {
    pub(crate) const fn is_postgres(self) -> bool {
        matches!(self, Self::Postgres | Self::PostgresStandby)
    }

    /// How many servers.
    pub(crate) const fn servers(self) -> usize {
        match self {
            Self::Postgres | Self::Mysql | Self::Mariadb => 1,
            Self::PostgresStandby => 2,
            Self::Galera => 3,
        }
    }

    /// Whether its servers' clocks can be moved. The group communication of Galera waits by the clock, and MySQL asks for the time
    /// so often that it hardly does anything else when a library answers.
    pub(crate) const fn has_clocks(self) -> bool {
        !matches!(self, Self::Galera | Self::Mysql)
    }

    pub(crate) const fn port(self) -> u16 {
        if self.is_postgres() { 5432 } else { 3306 }
    }
}

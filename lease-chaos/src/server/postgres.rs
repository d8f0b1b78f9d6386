//! PostgreSQL from the programs of this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::{CONNECTIONS, Server};
use crate::net::done;

/// Where Debian has a folder for each version.
const PROGRAMS: &str = "/usr/lib/postgresql";

impl Server {
    pub(super) fn make_postgres(&self) -> anyhow::Result<()> {
        let mut initdb = self.program(&program("initdb")?);
        initdb.args([
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ]);
        done(initdb.arg("--pgdata").arg(self.data()))?;
        let hba = "host all all 10.99.0.0/24 trust\nhost replication all 10.99.0.0/24 trust\n";
        fs::write(self.data().join("pg_hba.conf"), hba)?;
        // The service must find the superuser's seats taken by nobody but us. Commits are not flushed: the machine
        // does not die here, only the server does.
        let settings = format!(
            "listen_addresses = '*'\nunix_socket_directories = ''\nmax_connections = {}\n\
             superuser_reserved_connections = 6\nshared_buffers = 16MB\nmax_wal_size = 64MB\nmin_wal_size = 32MB\n\
             dynamic_shared_memory_type = mmap\nfsync = off\nfull_page_writes = off\nmax_wal_senders = 4\n\
             wal_retrieve_retry_interval = 200ms\nwal_receiver_timeout = 2s\nwal_sender_timeout = 2s\n",
            CONNECTIONS + 6
        );
        let path = self.data().join("postgresql.conf");
        let before = fs::read_to_string(&path)?;
        Ok(fs::write(path, before + &settings)?)
    }

    pub(super) fn postgres(&self) -> Command {
        let program = program("postgres").unwrap_or_else(|_| PathBuf::from("postgres"));
        let mut command = self.program_with_clock(&program);
        command.arg("-D").arg(self.data());
        command
    }

    /// Throws its data away and makes them a copy of the other's, which it will follow.
    pub(crate) fn copy_of(&self, primary: &Self) -> anyhow::Result<()> {
        fs::remove_dir_all(self.data())?;
        fs::create_dir(self.data())?;
        self.give(&self.data())?;
        done(Command::new("chmod").arg("700").arg(self.data()))?;
        let mut copy = self.program(&program("pg_basebackup")?);
        copy.args([
            "--checkpoint=fast",
            "--wal-method=stream",
            "--write-recovery-conf",
            "--no-sync",
        ]);
        copy.args(["--username=postgres", "--host", &primary.node.address]);
        done(copy.arg("--pgdata").arg(self.data()))
    }
}

/// A program of the newest version.
fn program(name: &str) -> anyhow::Result<PathBuf> {
    let entries = fs::read_dir(PROGRAMS).with_context(|| format!("{PROGRAMS}: is `postgresql` installed?"))?;
    let versions = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let newest = versions.max().context("no version of PostgreSQL is installed")?;
    Ok(Path::new(PROGRAMS).join(newest.to_string()).join("bin").join(name))
}

//! The processes of a local server, found by the folder they work in.
//!
//! Every process of a server, of whatever engine, has the data folder as its working directory. Unlike the tree of parents and
//! children this still holds when the first process is dead and its children have another parent.

use std::fs;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::ServerError;

/// The ids of all processes that work in `folder`, which must be a canonical path. Zombies are not among them.
pub(super) fn working_in(folder: &Path) -> Result<Vec<Pid>, ServerError> {
    let entries = fs::read_dir("/proc").map_err(ServerError::io("read the list of processes"))?;
    let pids = entries.flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let cwd = fs::read_link(entry.path().join("cwd")).ok()?;
        (cwd == folder).then_some(Pid::from_raw(pid))
    });
    Ok(pids.collect())
}

/// Sends `signal` to every process of the server, and to those that were started in the meantime.
pub(super) fn signal_all(folder: &Path, first: Pid, signal: Signal) -> Result<(), ServerError> {
    // The first process goes first: stopped or dead it starts no others, so this ends.
    let mut done = Vec::new();
    let mut todo = vec![first];
    while !todo.is_empty() {
        for pid in todo {
            send(pid, signal)?;
            done.push(pid);
        }
        todo = working_in(folder)?
            .into_iter()
            .filter(|pid| !done.contains(pid))
            .collect();
    }
    Ok(())
}

/// Sends `signal` to one process; one that is already gone is no error.
pub(super) fn send(pid: Pid, signal: Signal) -> Result<(), ServerError> {
    match kill(pid, signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(ServerError::errno("signal a process of the server")(errno)),
    }
}

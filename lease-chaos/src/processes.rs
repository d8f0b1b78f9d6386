//! The processes of a server, which all work in its data folder, also when their first one is dead.

use std::fs;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Those that work in this folder now. Zombies work nowhere.
pub(crate) fn working_in(folder: &Path) -> anyhow::Result<Vec<i32>> {
    let folder = fs::canonicalize(folder)?;
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Sends a signal to all of them, and to those that were started meanwhile.
pub(crate) fn signal_all(folder: &Path, signal: Signal) -> anyhow::Result<()> {
    let mut done = Vec::new();
    loop {
        let mut todo = working_in(folder)?;
        todo.retain(|pid| !done.contains(pid));
        if todo.is_empty() {
            return Ok(());
        }
        for pid in todo {
            send(pid, signal)?;
            done.push(pid);
        }
    }
}

/// Sends a signal; one that is gone needs none.
pub(crate) fn send(pid: i32, signal: Signal) -> anyhow::Result<()> {
    match kill(Pid::from_raw(pid), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

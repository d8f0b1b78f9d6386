use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::{User, geteuid};

use super::ServerError;

/// Where a local server lives: its folder, its port, and the user whom it runs under.
#[derive(Debug)]
pub(super) struct Place {
    /// Canonical, for the server's processes are known by it.
    pub(super) folder: PathBuf,
    /// Of 127.0.0.1.
    pub(super) port: u16,
    /// `None` for the one we are.
    user: Option<User>,
}

impl Place {
    /// An existing folder, which becomes that of the first of `users` that this machine has, for servers refuse to run as root.
    pub(super) fn new(folder: PathBuf, port: u16, engine: &'static str, users: [&str; 2]) -> Result<Self, ServerError> {
        let place = Self {
            folder: fs::canonicalize(folder).map_err(ServerError::io("find the folder of a server"))?,
            port,
            user: unprivileged(engine, users)?,
        };
        place.give(&place.folder)?;
        Ok(place)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// What the server writes to its standard output and error.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Makes an empty data folder, which nobody but the server may enter.
    pub(super) fn make_data(&self) -> Result<(), ServerError> {
        let mut folder = fs::DirBuilder::new();
        let made = folder.mode(0o700).create(self.data());
        made.map_err(ServerError::io("create the data folder of a server"))?;
        self.give(&self.data())
    }

    /// Writes a file that nobody but the server may read.
    pub(super) fn write(&self, name: &str, text: &[u8]) -> Result<PathBuf, ServerError> {
        let path = self.folder.join(name);
        let step = "write a file for a server";
        let mut options = fs::File::options();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text))
            .map_err(ServerError::io(step))?;
        self.give(&path)?;
        Ok(path)
    }

    /// The folder for the server's Unix socket, if a path in it is not too long: 107 bytes are the most.
    pub(super) fn sockets(&self) -> Option<&Path> {
        (self.folder.as_os_str().len() < 80).then_some(&*self.folder)
    }

    /// Lets a command work in the data folder, by which the watchdog knows it, under the server's user.
    pub(super) fn inside(&self, mut command: Command) -> Command {
        command.current_dir(self.data()).stdin(Stdio::null());
        if let Some(user) = &self.user {
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        }
        command
    }

    fn give(&self, path: &Path) -> Result<(), ServerError> {
        let Some(user) = &self.user else { return Ok(()) };
        chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
            .map_err(ServerError::io("give a file to a server"))
    }
}

fn unprivileged(engine: &'static str, users: [&str; 2]) -> Result<Option<User>, ServerError> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    for name in users {
        let user = User::from_name(name).map_err(ServerError::errno("look up the user of a server"))?;
        if user.is_some() {
            return Ok(user);
        }
    }
    Err(ServerError::Missing {
        engine,
        looked_for: format!("a user `{}` to run a server under", users.join("` or `")),
    })
}

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::{Pid, User, geteuid};

use super::blocking::Patience;
use super::instance::Instance;
use super::programs::{Programs, output};
use super::watchdog::Watchdog;
use super::{ServerError, Settings, processes};

/// How long an orderly end may take.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// How much of the log goes into an error, in bytes.
const LOG_TAIL: usize = 4_000;

/// A private server run from this machine's programs, in a temporary folder of its own.
#[derive(Debug)]
pub(super) struct Local {
    programs: Programs,
    user: Option<User>,
    port: u16,
    folder: PathBuf,
    postmaster: Option<Child>,
    // Dropped last: it ends the server and removes the folder.
    _watchdog: Watchdog,
}

impl Local {
    /// Prepares the data folder of a server that listens on `port` of 127.0.0.1; does not start it.
    pub(super) fn create(settings: &Settings, password: &str, port: u16) -> Result<Self, ServerError> {
        let programs = Programs::find(settings.version.as_deref()).ok_or_else(|| ServerError::Missing {
            looked_for: match &settings.version {
                Some(version) => format!("server programs of version {version} on this machine"),
                None => "server programs on this machine: no `initdb` and `postgres`".into(),
            },
        })?;
        let user = unprivileged()?;
        let folder = tempfile::Builder::new().prefix("lease-postgres-").tempdir();
        let folder = folder.map_err(ServerError::io("create the folder of a server"))?;
        let watchdog = Watchdog::start(include_str!("cleanup_local.sh"), &folder.path().to_string_lossy())?;
        // From here on the watchdog alone removes it, after it has ended the server.
        let folder = folder.keep();
        let folder = fs::canonicalize(folder).map_err(ServerError::io("find the folder of a server"))?;

        let local = Self {
            programs,
            user,
            port,
            folder,
            postmaster: None,
            _watchdog: watchdog,
        };
        local.give(&local.folder)?;
        local.make_data()?;
        local.initdb(password)?;
        local.configure_place()?;
        let list = settings.list(local.programs.has_statements_contrib());
        local.configure(list.iter().map(|(setting, value)| (setting.as_str(), value.as_str())))?;
        Ok(local)
    }

    fn initdb(&self, password: &str) -> Result<(), ServerError> {
        let file = self.folder.join("password");
        fs::write(&file, password).map_err(ServerError::io("write the password of a server"))?;
        self.give(&file)?;
        let mut initdb = self.command("initdb");
        // Not SCRAM: it costs a client milliseconds of CPU for each connection, and tests open thousands. What is
        // sent here does not leave the machine.
        initdb.args([
            "--auth=password",
            "--username=postgres",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ]);
        initdb.arg("--pwfile").arg(&file).arg("--pgdata").arg(self.data());
        output(initdb, "create a database cluster")?;
        fs::remove_file(file).map_err(ServerError::io("remove the password of a server"))
    }

    /// An empty data folder, which nobody but the server may enter.
    fn make_data(&self) -> Result<(), ServerError> {
        let mut folder = fs::DirBuilder::new();
        let made = folder.mode(0o700).create(self.data());
        made.map_err(ServerError::io("create the data folder of a server"))?;
        self.give(&self.data())
    }

    /// What this server has for itself alone, also when its data are a copy of another's.
    fn configure_place(&self) -> Result<(), ServerError> {
        let port = self.port.to_string();
        // Shared memory in files of the data folder goes away with it, even after the server was killed.
        let fixed = [
            ("port", port.as_str()),
            ("listen_addresses", "127.0.0.1"),
            ("dynamic_shared_memory_type", "mmap"),
        ];
        // A socket's path is limited to 107 bytes.
        let sockets = if self.folder.as_os_str().len() < 80 {
            self.folder.to_string_lossy()
        } else {
            "".into()
        };
        self.configure(fixed.into_iter().chain([("unix_socket_directories", &*sockets)]))
    }

    fn configure<'a>(&self, settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), ServerError> {
        let step = "write the settings of a server";
        let file = OpenOptions::new()
            .append(true)
            .open(self.data().join("postgresql.conf"));
        let mut file = file.map_err(ServerError::io(step))?;
        for (setting, value) in settings {
            let line = format!("{setting} = '{}'\n", value.replace('\'', "''"));
            file.write_all(line.as_bytes()).map_err(ServerError::io(step))?;
        }
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// A command that works in the data folder, by which the watchdog knows it, under the server's user.
    fn command(&self, program: &str) -> Command {
        let mut command = self.programs.command(program);
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

    fn postmaster(&self) -> Option<Pid> {
        let child = self.postmaster.as_ref()?;
        Some(Pid::from_raw(
            i32::try_from(child.id()).expect("process ids are positive"),
        ))
    }

    fn signal_all(&self, signal: Signal) -> Result<(), ServerError> {
        match self.postmaster() {
            Some(first) => processes::signal_all(&self.data(), first, signal),
            None => Ok(()),
        }
    }

    /// Waits until the first process has ended, and with it the others.
    fn wait(&mut self, limit: Duration) -> Result<(), ServerError> {
        let patience = Patience::new(limit);
        while self.ended().is_none() || !processes::working_in(&self.data())?.is_empty() {
            if !patience.wait() {
                return Err(ServerError::TimedOut {
                    step: "end",
                    seconds: limit.as_secs(),
                });
            }
        }
        self.postmaster = None;
        Ok(())
    }
}

impl Instance for Local {
    fn start(&mut self) -> Result<(), ServerError> {
        let open = || File::options().create(true).append(true).open(self.log_file());
        let log = open().map_err(ServerError::io("open the log of a server"))?;
        let errors = log.try_clone().map_err(ServerError::io("open the log of a server"))?;
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).stdout(log).stderr(errors);
        // Out of our process group: a Ctrl-C in the terminal is for the test, and the watchdog does the rest.
        command.process_group(0);
        let child = command.spawn().map_err(ServerError::io("run `postgres`"))?;
        self.postmaster = Some(child);
        Ok(())
    }

    fn follow(&mut self, url: &str) -> Result<(), ServerError> {
        if self.postmaster.is_some() {
            self.kill()?;
        }
        fs::remove_dir_all(self.data()).map_err(ServerError::io("remove the data of a server"))?;
        self.make_data()?;
        let mut copy = self.command("pg_basebackup");
        copy.args([
            "--checkpoint=fast",
            "--wal-method=stream",
            "--write-recovery-conf",
            "--no-sync",
        ]);
        copy.arg("--dbname").arg(url).arg("--pgdata").arg(self.data());
        output(copy, "copy a server")?;
        self.configure_place()
    }

    fn stop(&mut self) -> Result<(), ServerError> {
        let Some(postmaster) = self.postmaster() else {
            return Ok(());
        };
        processes::send(postmaster, Signal::SIGINT)?;
        self.wait(STOP_LIMIT)
    }

    fn kill(&mut self) -> Result<(), ServerError> {
        self.signal_all(Signal::SIGKILL)?;
        self.wait(STOP_LIMIT)
    }

    fn pause(&mut self) -> Result<(), ServerError> {
        self.signal_all(Signal::SIGSTOP)
    }

    fn resume(&mut self) -> Result<(), ServerError> {
        self.signal_all(Signal::SIGCONT)
    }

    fn freeze_backend(&mut self, pid: i32, frozen: bool) -> Result<(), ServerError> {
        let signal = if frozen { Signal::SIGSTOP } else { Signal::SIGCONT };
        processes::send(Pid::from_raw(pid), signal)
    }

    fn ended(&mut self) -> Option<String> {
        match self.postmaster.as_mut()?.try_wait() {
            Ok(status) => status.map(|status| status.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    fn log(&self) -> String {
        let log = fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_TAIL)..]).into_owned()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // The watchdog does the work; our own child only has to be collected, or it would stay a zombie.
        if let Some(mut child) = self.postmaster.take() {
            std::thread::spawn(move || child.wait());
        }
    }
}

/// The user to run a server under, which refuses to run as root; `None` for the one we are.
fn unprivileged() -> Result<Option<User>, ServerError> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        let user = User::from_name(name).map_err(ServerError::errno("look up the user of a server"))?;
        if user.is_some() {
            return Ok(user);
        }
    }
    Err(ServerError::Missing {
        looked_for: "a user `postgres` or `nobody` to run a server under".into(),
    })
}

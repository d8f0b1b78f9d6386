use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::blocking::Patience;
use super::instance::Instance;
use super::place::Place;
use super::recipe::Recipe;
use super::watchdog::Watchdog;
use super::{ServerError, processes};

/// How long an orderly end may take.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// How much of the log goes into an error, in bytes.
const LOG_TAIL: usize = 4_000;

/// A private server run from this machine's programs, in a temporary folder of its own.
#[derive(Debug)]
pub(super) struct Local<R> {
    recipe: R,
    place: Place,
    /// The process that we started, the server's first.
    first: Option<Child>,
    // Dropped last: it ends the server and removes the folder.
    _watchdog: Watchdog,
}

impl<R: Recipe> Local<R> {
    /// Prepares the data folder of a server that listens on `port` of 127.0.0.1; does not start it.
    pub(super) fn create(recipe: R, port: u16) -> Result<Self, ServerError> {
        let folder = tempfile::Builder::new().prefix(R::PREFIX).tempdir();
        let folder = folder.map_err(ServerError::io("create the folder of a server"))?;
        let watchdog = Watchdog::start(include_str!("cleanup_local.sh"), &folder.path().to_string_lossy())?;
        // From here on the watchdog alone removes it, after it has ended the server.
        let place = Place::new(folder.keep(), port, R::ENGINE, R::USERS)?;
        recipe.make(&place)?;
        Ok(Self {
            recipe,
            place,
            first: None,
            _watchdog: watchdog,
        })
    }

    fn first(&self) -> Option<Pid> {
        let child = self.first.as_ref()?;
        Some(Pid::from_raw(
            i32::try_from(child.id()).expect("process ids are positive"),
        ))
    }

    fn signal_all(&self, signal: Signal) -> Result<(), ServerError> {
        match self.first() {
            Some(first) => processes::signal_all(&self.place.data(), first, signal),
            None => Ok(()),
        }
    }

    /// Waits until the first process has ended, and with it the others.
    fn wait(&mut self, limit: Duration) -> Result<(), ServerError> {
        let patience = Patience::new(limit);
        while self.ended().is_none() || !processes::working_in(&self.place.data())?.is_empty() {
            if !patience.wait() {
                return Err(ServerError::TimedOut {
                    step: "end",
                    seconds: limit.as_secs(),
                });
            }
        }
        self.first = None;
        Ok(())
    }
}

impl<R: Recipe> Instance for Local<R> {
    fn start(&mut self) -> Result<(), ServerError> {
        let open = || File::options().create(true).append(true).open(self.place.log());
        let log = open().map_err(ServerError::io("open the log of a server"))?;
        let errors = log.try_clone().map_err(ServerError::io("open the log of a server"))?;
        let mut command = self.place.inside(self.recipe.server(&self.place));
        command.stdout(log).stderr(errors);
        // Out of our process group: a Ctrl-C in the terminal is for the test, and the watchdog does the rest.
        command.process_group(0);
        let child = command
            .spawn()
            .map_err(ServerError::io("run the program of a server"))?;
        self.first = Some(child);
        Ok(())
    }

    fn follow(&mut self, url: &str) -> Result<(), ServerError> {
        if self.first.is_some() {
            self.kill()?;
        }
        fs::remove_dir_all(self.place.data()).map_err(ServerError::io("remove the data of a server"))?;
        self.recipe.copy(&self.place, url)
    }

    fn stop(&mut self) -> Result<(), ServerError> {
        let Some(first) = self.first() else {
            return Ok(());
        };
        processes::send(first, R::STOP)?;
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
        match self.first.as_mut()?.try_wait() {
            Ok(status) => status.map(|status| status.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    fn log(&self) -> String {
        let log = fs::read(self.place.log()).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_TAIL)..]).into_owned()
    }
}

impl<R> Drop for Local<R> {
    fn drop(&mut self) {
        // The watchdog does the work; our own child only has to be collected, or it would stay a zombie.
        if let Some(mut child) = self.first.take() {
            std::thread::spawn(move || child.wait());
        }
    }
}

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;

use super::options::{argument, log_size, options};
use super::{Dialect, superuser};
use crate::servers::command::output;
use crate::servers::place::Place;
use crate::servers::recipe::Recipe;
use crate::servers::{ServerError, Settings};

/// Where distributions put the programs of servers, which are not in everybody's `PATH`.
const SYSTEM: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// A server from the MariaDB programs of this machine.
#[derive(Debug)]
pub(super) struct MariaDbRecipe {
    server: PathBuf,
    install: PathBuf,
    settings: Settings,
    password: String,
}

impl MariaDbRecipe {
    pub(super) fn new(settings: &Settings, password: &str) -> Result<Self, ServerError> {
        let missing = |looked_for: String| ServerError::Missing {
            engine: Self::ENGINE,
            looked_for,
        };
        let find =
            |program| find(program).ok_or_else(|| missing(format!("server programs on this machine: no `{program}`")));
        let (server, install) = (find("mariadbd")?, find("mariadb-install-db")?);
        if let Ok(version) = env::var(Dialect::MariaDb.version_variable()) {
            let mut ask = Command::new(&server);
            ask.args(["--no-defaults", "--version"]);
            if !is_version(&output(ask, "ask for its version")?, &version) {
                return Err(missing(format!("server programs of version {version} on this machine")));
            }
        }
        Ok(Self {
            server,
            install,
            settings: settings.clone(),
            password: password.to_owned(),
        })
    }
}

impl Recipe for MariaDbRecipe {
    const ENGINE: &'static str = "MariaDB";
    const PREFIX: &'static str = "lease-mariadb-";
    const USERS: [&'static str; 2] = ["mysql", "nobody"];
    const STOP: Signal = Signal::SIGTERM;

    fn make(&self, place: &Place) -> Result<(), ServerError> {
        place.make_data()?;
        for (setting, text) in &self.settings.files {
            place.write(setting, text)?;
        }
        let more = place.write("superuser.sql", superuser(&self.password).as_bytes())?;
        let (option, size) = log_size(Dialect::MariaDb);
        let mut install = Command::new(&self.install);
        install.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
        install.args(["--skip-test-db", "--skip-name-resolve"]);
        install.arg(format!("--datadir={}", place.data().display()));
        install.arg(format!("--extra-file={}", more.display()));
        install.arg(temporary(place));
        install.arg(argument((option.into(), size)));
        output(place.inside(install), "create a data folder")?;
        fs::remove_file(more).map_err(ServerError::io("remove the password of a server"))
    }

    fn server(&self, place: &Place) -> Command {
        let mut command = Command::new(&self.server);
        let socket = match (&self.settings.sockets, place.sockets()) {
            (Some(folder), _) => folder.join("mysqld.sock"),
            (None, Some(folder)) => folder.join("mysqld.sock"),
            (None, None) => PathBuf::new(),
        };
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", place.data().display()))
            .arg(format!("--pid-file={}", place.folder.join("pid").display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--port={}", place.port))
            .arg(temporary(place))
            .arg("--bind-address=127.0.0.1");
        let files = self.settings.files.iter().map(|(setting, _)| {
            let path = place.folder.join(setting);
            (setting.clone(), path.to_string_lossy().into_owned())
        });
        let options = options(Dialect::MariaDb, &self.settings);
        command.args(options.into_iter().chain(files).map(argument));
        command
    }
}

/// A server begins by clearing away what lies in its folder for temporary files, so it must not be another's, too.
fn temporary(place: &Place) -> String {
    format!("--tmpdir={}", place.folder.display())
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = SYSTEM.iter().map(PathBuf::from).chain(env::split_paths(&path));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Whether a server that calls itself so is of `version`, such as `11.8` or `11`.
fn is_version(told: &str, version: &str) -> bool {
    let number = told.split_whitespace().skip_while(|word| *word != "Ver").nth(1);
    let rest = number.and_then(|number| number.strip_prefix(version));
    rest.is_some_and(|rest| rest.starts_with(['.', '-']))
}

#[cfg(test)]
mod tests {
    use super::is_version;

    #[test]
    fn version_is_compared_by_its_parts() {
        let told = "/usr/sbin/mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu on x86_64 (Debian 12)";
        assert!(is_version(told, "10.11") && is_version(told, "10") && is_version(told, "10.11.14"));
        assert!(!is_version(told, "10.1") && !is_version(told, "11.8") && !is_version("", "10"));
    }
}

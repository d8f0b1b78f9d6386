use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::Command;

use nix::sys::signal::Signal;

use super::programs::Programs;
use super::{ENGINE, options, version};
use crate::servers::command::output;
use crate::servers::place::Place;
use crate::servers::recipe::Recipe;
use crate::servers::{ServerError, Settings};

/// A server from the PostgreSQL programs of this machine.
#[derive(Debug)]
pub(super) struct PostgresRecipe {
    programs: Programs,
    settings: Settings,
    password: String,
}

impl PostgresRecipe {
    pub(super) fn new(settings: &Settings, password: &str) -> Result<Self, ServerError> {
        let version = version();
        let programs = Programs::find(version.as_deref()).ok_or_else(|| ServerError::Missing {
            engine: ENGINE,
            looked_for: match version {
                Some(version) => format!("server programs of version {version} on this machine"),
                None => "server programs on this machine: no `initdb` and `postgres`".into(),
            },
        })?;
        Ok(Self {
            programs,
            settings: settings.clone(),
            password: password.to_owned(),
        })
    }

    fn initdb(&self, place: &Place) -> Result<(), ServerError> {
        let password = place.write("password", self.password.as_bytes())?;
        let mut initdb = self.programs.command("initdb");
        // As a server is set up nowadays. A plain password would be dearer: it is hashed by the server then, which takes
        // longer than the client does.
        initdb.args([
            "--auth=scram-sha-256",
            "--username=postgres",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ]);
        initdb.arg("--pwfile").arg(&password).arg("--pgdata").arg(place.data());
        output(place.inside(initdb), "create a database cluster")?;
        fs::remove_file(password).map_err(ServerError::io("remove the password of a server"))
    }

    /// What this server has for itself alone, also when its data are a copy of another's.
    fn configure_place(&self, place: &Place) -> Result<(), ServerError> {
        let port = place.port.to_string();
        let sockets = self.settings.sockets.as_deref().or_else(|| place.sockets());
        let sockets = sockets.map(|folder| folder.to_string_lossy()).unwrap_or_default();
        // Shared memory in files of the data folder goes away with it, even after the server was killed.
        let fixed = [
            ("port", port.as_str()),
            ("listen_addresses", "127.0.0.1"),
            ("dynamic_shared_memory_type", "mmap"),
            ("unix_socket_directories", &*sockets),
        ];
        configure(place, fixed)
    }
}

impl Recipe for PostgresRecipe {
    const ENGINE: &'static str = ENGINE;
    const PREFIX: &'static str = "lease-postgres-";
    const USERS: [&'static str; 2] = ["postgres", "nobody"];
    const STOP: Signal = Signal::SIGINT;

    fn make(&self, place: &Place) -> Result<(), ServerError> {
        place.make_data()?;
        self.initdb(place)?;
        self.configure_place(place)?;
        let mut list = options(&self.settings, self.programs.has_statements_contrib());
        for (setting, text) in &self.settings.files {
            let path = place.write(setting, text)?;
            list.push((setting.clone(), path.to_string_lossy().into_owned()));
        }
        configure(place, list.iter().map(|(setting, value)| (&**setting, &**value)))
    }

    fn server(&self, place: &Place) -> Command {
        let mut command = self.programs.command("postgres");
        command.arg("-D").arg(place.data());
        command
    }

    fn copy(&self, place: &Place, url: &str) -> Result<(), ServerError> {
        place.make_data()?;
        let mut copy = self.programs.command("pg_basebackup");
        copy.args([
            "--checkpoint=fast",
            "--wal-method=stream",
            "--write-recovery-conf",
            "--no-sync",
        ]);
        copy.arg("--dbname").arg(url).arg("--pgdata").arg(place.data());
        output(place.inside(copy), "copy a server")?;
        self.configure_place(place)
    }
}

fn configure<'a>(place: &Place, settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), ServerError> {
    let step = "write the settings of a server";
    let file = OpenOptions::new()
        .append(true)
        .open(place.data().join("postgresql.conf"));
    let mut file = file.map_err(ServerError::io(step))?;
    for (setting, value) in settings {
        let line = format!("{setting} = '{}'\n", value.replace('\'', "''"));
        file.write_all(line.as_bytes()).map_err(ServerError::io(step))?;
    }
    Ok(())
}

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders in which distributions keep one folder of server programs for each version.
const VERSIONED: [&str; 2] = ["/usr/lib/postgresql", "/usr/local/lib/postgresql"];

/// The server programs of one PostgreSQL version installed on this machine.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// The newest version that a distribution's package put on this machine, else what `PATH` has; or this version.
    pub(super) fn find(version: Option<&str>) -> Option<Self> {
        let mut versions: Vec<(u32, PathBuf)> = VERSIONED.iter().flat_map(|parent| versions_in(parent)).collect();
        versions.retain(|(number, _)| version.is_none_or(|version| version == number.to_string()));
        versions.sort();
        let folder = match (versions.pop(), version) {
            (Some((_, newest)), _) => newest,
            (None, Some(_)) => return None,
            (None, None) => env::split_paths(&env::var_os("PATH")?).find(|folder| is_complete(folder))?,
        };
        // Distributions put links to programs into PATH; what belongs to a program lies beside the real one.
        let real = fs::canonicalize(folder.join("postgres")).ok()?;
        Some(Self {
            folder: real.parent()?.to_owned(),
        })
    }

    /// A command that runs `program`, as the user who owns the server and with none of our PostgreSQL variables.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.folder.join(program));
        for (variable, _) in env::vars_os().filter(|(variable, _)| variable.to_string_lossy().starts_with("PG")) {
            command.env_remove(variable);
        }
        // Messages that are read here, and the sort order of all test databases, must not depend on the machine.
        command.env_remove("LANG").env("LC_ALL", "C");
        command
    }

    /// Whether the extension `pg_stat_statements` is installed beside the server.
    pub(super) fn has_statements_contrib(&self) -> bool {
        let libraries = Command::new(self.folder.join("pg_config")).arg("--pkglibdir").output();
        let libraries = match libraries {
            Ok(output) if output.status.success() => PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()),
            _ => self.folder.join("../lib"),
        };
        libraries.join("pg_stat_statements.so").exists()
    }
}

fn versions_in(parent: &str) -> impl Iterator<Item = (u32, PathBuf)> + use<> {
    fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            let folder = entry.path().join("bin");
            is_complete(&folder).then_some((version, folder))
        })
}

fn is_complete(folder: &Path) -> bool {
    ["initdb", "postgres"]
        .iter()
        .all(|program| folder.join(OsStr::new(program)).is_file())
}

//! What this machine has for tests, and what is still to be installed.

use std::env;
use std::fmt;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::report::note;
use crate::run;

/// Where Debian puts the programs of a PostgreSQL server, in a folder for each major version.
const POSTGRES: &str = "/usr/lib/postgresql";

/// What was found.
#[derive(Debug)]
pub(crate) struct Machine {
    /// A Docker engine that answers, and its client.
    pub(crate) docker: bool,
    /// `debootstrap`, which builds images from Debian packages.
    pub(crate) debootstrap: Option<PathBuf>,
    /// The folder with the server programs of the newest PostgreSQL.
    pub(crate) postgres: Option<PathBuf>,
    /// The server program of MariaDB, with what makes its data folder.
    pub(crate) mariadb: Option<PathBuf>,
    /// `ip`, which makes network namespaces.
    pub(crate) ip: Option<PathBuf>,
    /// Whether we are root.
    pub(crate) root: bool,
}

impl Machine {
    /// Looks around; changes nothing.
    pub(crate) fn look() -> Self {
        Self {
            docker: run::which("docker").is_some() && docker_answers(),
            debootstrap: run::which("debootstrap"),
            postgres: postgres_programs(Path::new(POSTGRES)),
            mariadb: mariadb_programs(),
            ip: run::which("ip"),
            root: nix::unistd::geteuid().is_root(),
        }
    }

    /// The Debian packages that the tests still need here.
    ///
    /// Server programs also where there is an engine: tests break both kinds of servers, each in its own way.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let mut packages = Vec::new();
        if self.docker && self.debootstrap.is_none() {
            packages.push("debootstrap");
        }
        if self.postgres.is_none() {
            packages.push("postgresql");
        }
        if self.mariadb.is_none() {
            // Without what would start a server.
            packages.extend(["mariadb-server-core", "mariadb-client-core"]);
        }
        if self.ip.is_none() {
            packages.push("iproute2");
        }
        packages
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |path: &Option<PathBuf>| {
            path.as_ref()
                .map_or("none".to_owned(), |path| path.display().to_string())
        };
        let (debootstrap, ip) = (shown(&self.debootstrap), shown(&self.ip));
        let (postgres, mariadb) = (shown(&self.postgres), shown(&self.mariadb));
        write!(
            f,
            "Docker: {}; debootstrap: {debootstrap}; PostgreSQL programs: {postgres}; MariaDB: {mariadb}; ip: {ip}; root: {}",
            word(self.docker),
            word(self.root)
        )
    }
}

fn word(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

/// Installs Debian packages.
///
/// # Errors
///
/// We are not root, or apt-get failed.
pub(crate) fn install(packages: &[&str]) -> anyhow::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!("only root can install {}", packages.join(" "));
    }
    // Debian's package makes a database cluster and starts it. Tests bring up their own, and a server that nobody
    // asked for would be left behind.
    let quiet = Path::new("/etc/postgresql-common/createcluster.d/lease-tests.conf");
    if packages.contains(&"postgresql") {
        let folder = quiet.parent().context("a file has a folder")?;
        fs::create_dir_all(folder).context("cannot keep PostgreSQL from starting a cluster")?;
        fs::write(quiet, "create_main_cluster = false\n")?;
    }
    let result = apt_get(&["update"]).and_then(|()| {
        let install = ["install", "--yes", "--no-install-recommends"];
        apt_get(&[&install, packages].concat())
    });
    if quiet.exists() {
        fs::remove_file(quiet)?;
    }
    result
}

fn apt_get(args: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("apt-get");
    // Another apt may be at work on a machine that has just started.
    command.args(["-q", "-o", "DPkg::Lock::Timeout=120"]).args(args);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    run::must(&mut command)
}

/// `mariadb-install-db` is a script that asks the third for its settings.
fn mariadb_programs() -> Option<PathBuf> {
    run::which("mariadb-install-db")?;
    run::which("my_print_defaults")?;
    run::which("mariadbd")
}

/// The newest version's programs that are complete enough to run a server.
fn postgres_programs(versions: &Path) -> Option<PathBuf> {
    let complete = |programs: &PathBuf| ["initdb", "postgres"].iter().all(|name| programs.join(name).is_file());
    let version = |entry: &fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let entries = fs::read_dir(versions).ok()?.flatten();
    let found = entries.filter_map(|entry| Some((version(&entry)?, entry.path().join("bin"))));
    let found = found.filter(|(_, programs)| complete(programs));
    found.max().map(|(_, programs)| programs)
}

/// Asks the engine for a sign of life, the way its own clients do, since there may be an engine without a client.
fn docker_answers() -> bool {
    let host = env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned());
    let limit = Some(Duration::from_secs(5));
    let answer = if let Some(socket) = host.strip_prefix("unix://") {
        UnixStream::connect(socket).and_then(|mut stream| {
            stream.set_read_timeout(limit)?;
            ping(&mut stream)
        })
    } else if let Some(address) = host.strip_prefix("tcp://") {
        TcpStream::connect(address).and_then(|mut stream| {
            stream.set_read_timeout(limit)?;
            ping(&mut stream)
        })
    } else {
        note(format_args!("DOCKER_HOST={host} is neither unix:// nor tcp://"));
        return false;
    };
    answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

fn ping(stream: &mut (impl Read + Write)) -> std::io::Result<String> {
    stream.write_all(b"GET /_ping HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n")?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare() -> Machine {
        Machine {
            docker: false,
            debootstrap: None,
            postgres: None,
            mariadb: None,
            ip: None,
            root: true,
        }
    }

    #[test]
    fn what_is_missing_depends_on_the_engine() {
        let mut machine = bare();
        let servers = ["postgresql", "mariadb-server-core", "mariadb-client-core", "iproute2"];
        assert_eq!(machine.missing(), servers);
        machine.docker = true;
        assert_eq!(machine.missing(), [&["debootstrap"], &servers[..]].concat());
        machine.debootstrap = Some("/bin/debootstrap".into());
        machine.postgres = Some("/bin".into());
        machine.mariadb = Some("/sbin/mariadbd".into());
        machine.ip = Some("/bin/ip".into());
        assert_eq!(machine.missing(), [""; 0]);
    }

    #[test]
    fn newest_complete_version_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        for (version, programs) in [
            ("9", &["initdb", "postgres"][..]),
            ("15", &["initdb", "postgres"]),
            ("17", &["psql"]),
        ] {
            let bin = folder.path().join(version).join("bin");
            fs::create_dir_all(&bin).unwrap();
            for program in programs {
                fs::write(bin.join(program), "").unwrap();
            }
        }
        assert_eq!(postgres_programs(folder.path()), Some(folder.path().join("15/bin")));
        assert_eq!(postgres_programs(&folder.path().join("none")), None);
    }

    #[test]
    fn ping_reads_the_status_line() {
        struct Engine(&'static [u8]);
        impl Read for Engine {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                self.0.read(buffer)
            }
        }
        impl Write for Engine {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        assert_eq!(ping(&mut Engine(b"HTTP/1.1 200 OK\r\n")).unwrap(), "HTTP/1.1 200");
        assert!(ping(&mut Engine(b"")).is_err());
    }
}

//! A server of a test's own, for what would hurt the others: stopping it, freezing it, counting all it does.

use std::path::PathBuf;
use std::process::Command;

use super::random;

/// A private instance from the programs installed on the machine, on a free port, gone with it.
pub(crate) struct Server {
    pub(crate) url: String,
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Server {
    pub(crate) fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("lease-pg-{:016x}", random()));
        std::fs::create_dir(&folder).unwrap();
        shell(&format!("[ $(id -u) != 0 ] || chown postgres {}", folder.display()));
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let server = Self {
            url: format!("postgres://postgres@127.0.0.1:{port}/postgres"),
            programs: programs(),
            folder,
            port,
        };
        server.program(
            "initdb",
            "--auth=trust --username=postgres --no-sync --encoding=UTF8 --locale=C",
        );
        server.up();
        server
    }

    /// Starts it after [`down`](Self::down).
    pub(crate) fn up(&self) {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c autovacuum=off \
             -c shared_preload_libraries=pg_stat_statements",
            self.port
        );
        self.program(
            "pg_ctl",
            &format!("-w -l {}/log -o '{options}' start", self.folder.display()),
        );
    }

    pub(crate) fn down(&self) {
        self.program("pg_ctl", "-w -m fast stop");
    }

    /// Sends a signal, `STOP` or `CONT`, to all its processes: frozen, it takes connections and answers nothing.
    pub(crate) fn signal(&self, signal: &str) {
        shell(&format!(
            "main=$(head -1 {}/data/postmaster.pid); kill -{signal} $main $(ps -o pid= --ppid $main)",
            self.folder.display()
        ));
    }

    fn program(&self, name: &str, arguments: &str) {
        let user = "$([ $(id -u) != 0 ] || echo runuser -u postgres --)";
        let program = self.programs.join(name);
        shell(&format!(
            "cd {folder} && {user} {program} -D {folder}/data {arguments} >{folder}/out 2>&1 || {{ cat {folder}/out >&2; exit 1; }}",
            folder = self.folder.display(),
            program = program.display(),
        ));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.signal("CONT");
        }
        let stop = format!(
            "main=$(head -1 {0}/data/postmaster.pid) && kill -QUIT $main; rm -rf {0}",
            self.folder.display()
        );
        let _ = Command::new("sh").arg("-c").arg(stop).status();
    }
}

fn shell(script: &str) {
    let status = Command::new("sh").arg("-c").arg(script).status().unwrap();
    assert!(status.success(), "{script}: {status}");
}

/// The folder with `initdb`: where Debian's packages put it.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL's server programs are installed");
    let newest = versions.map(|version| version.unwrap().path()).max().unwrap();
    newest.join("bin")
}

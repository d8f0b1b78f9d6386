//! One server of a world: programs of this machine or of an image's files, in a namespace with an address, with a small disk
//! and a clock of its own.

mod mysql;
mod postgres;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use lease_core::{BootClock, Clock};
use nix::sys::signal::Signal;

use crate::admin::Admin;
use crate::engine::Engine;
use crate::net::{Node, done};
use crate::processes;

/// How long a start or an orderly end may take.
const PATIENCE: Duration = Duration::from_secs(180);
/// Whether a node of a cluster takes statements.
const READY: &str = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'WSREP_READY'";
/// What it says of its cluster: which one of all that there were, and of how many nodes.
const MEMBERS: &str = "SELECT GROUP_CONCAT(variable_value ORDER BY variable_name) FROM information_schema.global_status \
                       WHERE variable_name IN ('WSREP_CLUSTER_CONF_ID', 'WSREP_CLUSTER_SIZE', 'WSREP_READY')";
/// How large its disk is, in megabytes.
const DISK: u32 = 500;
/// The most connections of the service.
pub(crate) const CONNECTIONS: usize = 60;
/// Where Debian has the library that moves a program's clock.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// One server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) engine: Engine,
    pub(crate) node: Node,
    /// The superuser, for the nemesis.
    pub(crate) admin: Admin,
    index: usize,
    /// Its disk.
    folder: PathBuf,
    /// The files of an image, for programs that this machine has not.
    root: Option<PathBuf>,
    user: String,
    log: PathBuf,
    child: Option<Child>,
    /// The addresses of all nodes of a cluster.
    peers: Vec<String>,
    /// Whether it is to begin a cluster, not to join one.
    is_first: bool,
}

impl Server {
    /// A server with an empty disk.
    pub(crate) fn new(engine: Engine, index: usize, root: Option<&Path>, out: &Path) -> anyhow::Result<Self> {
        let address = |index: usize| u8::try_from(21 + index).expect("few servers");
        let node = Node::new(address(index))?;
        let parent = root.map_or_else(|| out.to_owned(), |root| root.join("var"));
        let folder = parent.join(format!("disk-{index}"));
        fs::create_dir_all(&folder)?;
        // In the mount namespace of the world, so it is gone when the world is.
        done(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", &format!("size={DISK}m,mode=755"), "tmpfs"])
                .arg(&folder),
        )?;
        fs::copy(FAKETIME, folder.join("faketime.so"))
            .with_context(|| format!("{FAKETIME}: is `faketime` installed?"))?;
        let admin = Admin::new(engine, &node.address);
        let server = Self {
            engine,
            node,
            admin,
            index,
            folder,
            root: root.map(Path::to_owned),
            user: user(engine, root)?.to_owned(),
            log: out.join(format!("server-{}.log", index + 1)),
            child: None,
            peers: (0..engine.servers())
                .map(|index| format!("10.99.0.{}", address(index)))
                .collect(),
            is_first: index == 0,
        };
        server.set_clock(0.0)?;
        fs::create_dir(server.data())?;
        server.give(&server.folder)?;
        Ok(server)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A path of its disk as its programs see it.
    fn inside(&self, path: &Path) -> PathBuf {
        let outside = self.root.as_ref().and_then(|root| path.strip_prefix(root).ok());
        outside.map_or_else(|| path.to_owned(), |path| Path::new("/").join(path))
    }

    fn give(&self, path: &Path) -> anyhow::Result<()> {
        let mut chown = match &self.root {
            Some(root) => {
                let mut chown = Command::new("chroot");
                chown.arg(root).arg("chown");
                chown
            }
            None => Command::new("chown"),
        };
        done(chown.arg("--recursive").arg(&self.user).arg(self.inside(path)))
    }

    /// One of its programs, under its user, on its network and with its clock.
    fn program(&self, program: &Path) -> Command {
        let mut command = match &self.root {
            Some(root) => {
                let mut command = self.node.command("chroot");
                command.arg(format!("--userspec={0}", self.user)).arg(root);
                command
            }
            None => {
                let mut command = self.node.command("setpriv");
                command.args(["--reuid", &self.user, "--clear-groups"]);
                command
            }
        };
        command.args(["env", "LC_ALL=C"]);
        command.arg(program).current_dir(self.data()).stdin(Stdio::null());
        command
    }

    /// As [`program`](Self::program), with a clock that can be moved.
    fn program_with_clock(&self, program: &Path) -> Command {
        if !self.engine.has_clocks() {
            return self.program(program);
        }
        let file = |name: &str| self.inside(&self.folder.join(name)).display().to_string();
        let mut command = self.program(Path::new("env"));
        command.arg("DONT_FAKE_MONOTONIC=1");
        // All processes of a server have one clock.
        command.arg("FAKETIME_NO_CACHE=1");
        command.arg(format!("FAKETIME_TIMESTAMP_FILE={}", file("clock")));
        command.arg(format!("LD_PRELOAD={}", file("faketime.so"))).arg(program);
        command
    }

    /// Makes what is to be on its disk before the first start.
    pub(crate) fn make(&self) -> anyhow::Result<()> {
        if self.engine.is_postgres() {
            self.make_postgres()
        } else {
            self.make_mysql()
        }
    }

    /// Starts it, and waits until it answers. One that gives up is started again, as an operator would: a node does when it can't
    /// join the others in time.
    pub(crate) async fn start(&mut self) -> anyhow::Result<()> {
        let deadline = BootClock.now() + PATIENCE;
        self.spawn()?;
        while let Err(error) = self.answers().await {
            if BootClock.now() > deadline {
                let log = self.log.display();
                return Err(error.context(format!("{} did not start; see {log}", self.name())));
            }
            if !self.runs() {
                self.kill().await?;
                self.spawn()?;
            }
            rest().await;
        }
        // Whoever starts later joins those that are there.
        self.is_first = false;
        Ok(())
    }

    fn spawn(&mut self) -> anyhow::Result<()> {
        let open = || OpenOptions::new().create(true).append(true).open(&self.log);
        let (output, errors) = (open()?, open()?);
        let mut command = if self.engine.is_postgres() {
            self.postgres()
        } else {
            self.mysql()
        };
        self.child = Some(command.stdout(output).stderr(errors).spawn()?);
        Ok(())
    }

    /// Waits until it answers again.
    pub(crate) async fn wait(&mut self) -> anyhow::Result<()> {
        let deadline = BootClock.now() + PATIENCE;
        while let Err(error) = self.answers().await {
            if BootClock.now() > deadline {
                return Err(error.context(format!("{} did not come back", self.name())));
            }
            rest().await;
        }
        Ok(())
    }

    /// Whether it takes statements.
    async fn answers(&mut self) -> anyhow::Result<()> {
        let limit = Duration::from_millis(500);
        if self.engine == Engine::Galera {
            let ready = self.admin.sql_within(READY, limit).await?;
            anyhow::ensure!(ready == ["ON"], "{} is not part of its cluster", self.name());
            return Ok(());
        }
        self.admin.sql_within("SELECT 1", limit).await.map(drop)
    }

    /// What a node says of its cluster.
    pub(crate) async fn members(&mut self) -> anyhow::Result<String> {
        let said = self.admin.sql_within(MEMBERS, Duration::from_millis(500)).await?;
        Ok(said.concat())
    }

    /// Ends it in order.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        let signal = if self.engine.is_postgres() {
            Signal::SIGINT
        } else {
            Signal::SIGTERM
        };
        if let Some(child) = &self.child {
            processes::send(i32::try_from(child.id())?, signal)?;
        }
        self.gone().await
    }

    /// Kills it, as a loss of power does. What was committed is in the memory of the machine's files.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        processes::signal_all(&self.data(), Signal::SIGKILL)?;
        self.gone().await
    }

    async fn gone(&mut self) -> anyhow::Result<()> {
        let deadline = BootClock.now() + PATIENCE;
        while !processes::working_in(&self.data())?.is_empty() {
            if BootClock.now() > deadline {
                bail!("{} does not end", self.name());
            }
            rest().await;
        }
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        let _ = fs::remove_file(self.data().join("postmaster.pid"));
        Ok(())
    }

    /// Whether its first process is there.
    pub(crate) fn runs(&mut self) -> bool {
        self.child
            .as_mut()
            .is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Freezes it, or lets it go on with what it was doing.
    pub(crate) fn freeze(&self, frozen: bool) -> anyhow::Result<()> {
        let signal = if frozen { Signal::SIGSTOP } else { Signal::SIGCONT };
        processes::signal_all(&self.data(), signal)
    }

    /// Lets its clock be this many seconds ahead of the machine's, at once for all its processes.
    pub(crate) fn set_clock(&self, ahead: f64) -> anyhow::Result<()> {
        let (next, clock) = (self.folder.join("clock.next"), self.folder.join("clock"));
        fs::write(&next, format!("{ahead:+.3}\n"))?;
        Ok(fs::rename(next, clock)?)
    }

    /// As [`set_clock`](Self::set_clock), and looks whether the server's time is what it is told to be.
    pub(crate) async fn step_clock(&mut self, ahead: f64) -> anyhow::Result<()> {
        self.set_clock(ahead)?;
        let text = if self.engine.is_postgres() {
            "SELECT extract(epoch FROM clock_timestamp())"
        } else {
            "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) AS CHAR)"
        };
        let before = real_seconds();
        let said: f64 = self.admin.sql(text).await?.concat().parse()?;
        // It was asked in between.
        let (least, most) = (before + ahead - 0.005, real_seconds() + ahead + 0.005);
        anyhow::ensure!(
            (least..most).contains(&said),
            "{}'s clock did not move by {ahead} s",
            self.name()
        );
        Ok(())
    }

    /// Fills its disk to the last byte.
    pub(crate) fn fill_disk(&self) -> anyhow::Result<()> {
        let mut file = File::create(self.filler())?;
        let zeros = vec![0; 64 * 1024];
        loop {
            match file.write(&zeros) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) fn free_disk(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.filler())?)
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }

    pub(crate) fn name(&self) -> String {
        format!("server-{}", self.index + 1)
    }

    /// The address and port for clients.
    pub(crate) fn socket(&self) -> String {
        format!("{}:{}", self.node.address, self.engine.port())
    }
}

/// The machine's own wall clock.
#[expect(
    clippy::disallowed_methods,
    reason = "what a server's clock is held against, which is a wall clock"
)]
fn real_seconds() -> f64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or_default().as_secs_f64()
}

/// Servers refuse to run as root.
fn user(engine: Engine, root: Option<&Path>) -> anyhow::Result<&'static str> {
    let is_here = |name| nix::unistd::User::from_name(name).map(|user| user.is_some());
    Ok(match engine {
        _ if engine.is_postgres() => "postgres",
        _ if root.is_some() || is_here("mysql")? => "mysql",
        _ => "nobody",
    })
}

/// A short pause between two looks.
pub(crate) async fn rest() {
    BootClock.sleep_until(BootClock.now() + Duration::from_millis(20)).await;
}

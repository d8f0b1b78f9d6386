//! The network of a world: a bridge in the namespace that we run in, and for each pod and server a namespace with an address of
//! its own. Packets are dropped by the kernel's own filter, in the namespace of whom it is about.

use std::ffi::OsStr;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Serialize;

/// Our own address, where the relays are.
pub(crate) const HUB: &str = "10.99.0.1";

/// Which packets are dropped, seen from the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    In,
    Out,
    Both,
}

/// Makes the bridge.
///
/// # Errors
/// We are not root, not in a namespace of our own, or `ip` is missing.
pub(crate) fn make_hub() -> anyhow::Result<()> {
    if fs::read_dir("/sys/class/net")?.count() > 1 && interfaces()? != ["lo"] {
        bail!("this is the machine's own network: a world is started by `cargo xtask chaos`, in namespaces of its own");
    }
    sh("ip link set lo up && ip link add hub type bridge && ip link set hub up")?;
    sh(&format!("ip addr add {HUB}/24 dev hub"))
}

fn interfaces() -> anyhow::Result<Vec<String>> {
    let output = Command::new("ip")
        .args(["-o", "link"])
        .output()
        .context("`ip` is missing")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let name = |line: &str| Some(line.split(": ").nth(1)?.split('@').next()?.to_owned());
    Ok(text.lines().filter_map(name).collect())
}

/// A namespace with an address. Whoever runs in it is not part of it: it stays when they are killed.
#[derive(Debug)]
pub(crate) struct Node {
    holder: Child,
    pub(crate) address: String,
}

impl Node {
    /// The node 10.99.0.`number`.
    pub(crate) fn new(number: u8) -> anyhow::Result<Self> {
        let address = format!("10.99.0.{number}");
        let mut holder = Command::new("unshare");
        holder.args(["--net", "sleep", "infinity"]).stdin(Stdio::null());
        let holder = holder.spawn().context("`unshare` is missing")?;
        let (id, ours) = (holder.id(), fs::read_link("/proc/self/ns/net")?);
        let mut looks = 0;
        while fs::read_link(format!("/proc/{id}/ns/net"))? == ours {
            looks += 1;
            if looks > 500 {
                bail!("no namespace for {address} within 5 s");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let node = Self { holder, address };
        let link = format!("node{number}");
        sh(&format!("ip link add {link} type veth peer name eth0 netns {id}"))?;
        sh(&format!("ip link set {link} master hub && ip link set {link} up"))?;
        let address = &node.address;
        node.run(&format!(
            "ip addr add {address}/24 dev eth0 && ip link set eth0 up && ip link set lo up"
        ))?;
        Ok(node)
    }

    /// A command that runs here.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/proc/{}/ns/net", self.holder.id()))
            .arg("--")
            .arg(program);
        command
    }

    /// Drops packets from and to everybody, or this one address, until [`mend`](Self::mend). Nobody is told.
    pub(crate) fn cut(&self, way: Way, whom: Option<&str>) -> anyhow::Result<()> {
        let rule = |chain: &str, side: &str| {
            let whom = whom.map_or(String::new(), |address| format!(" -{side} {address}"));
            self.run(&format!("iptables -w 5 -A {chain}{whom} -j DROP"))
        };
        if way != Way::Out {
            rule("INPUT", "s")?;
        }
        if way != Way::In {
            rule("OUTPUT", "d")?;
        }
        Ok(())
    }

    /// Lets all packets through again.
    pub(crate) fn mend(&self) -> anyhow::Result<()> {
        self.run("iptables -w 5 -F")
    }

    fn run(&self, script: &str) -> anyhow::Result<()> {
        let mut command = self.command("sh");
        done(command.args(["-c", script]))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn sh(script: &str) -> anyhow::Result<()> {
    done(Command::new("sh").args(["-c", script]))
}

/// Runs a command to its end, which must be a good one.
pub(crate) fn done(command: &mut Command) -> anyhow::Result<()> {
    let shown = format!("{command:?}");
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {shown}"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("{shown}: {}: {}", output.status, String::from_utf8_lossy(&text).trim());
    }
    Ok(())
}

//! A process that owns a server, and is killed.

use std::env;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Set in a child process of these tests, which then owns a server until it is killed.
const OWNER: &str = "LEASE_TEST_SERVER_OWNER";

/// Whether we are such a child.
pub(crate) fn is_owner() -> bool {
    env::var_os(OWNER).is_some()
}

/// Plays the owner: says where the server is, and never ends.
pub(crate) fn own(url: &str) -> ! {
    println!("\nurl={url}");
    loop {
        thread::park();
    }
}

/// Starts the named test once more, as an owner, and returns it with its server's URL.
pub(crate) fn owner(test: &str) -> (Child, String) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--include-ignored", "--nocapture"])
        .env(OWNER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let url = lines
        .filter_map(|line| Some(line.strip_prefix("url=")?.to_owned()))
        .next();
    (child, url.expect("the owner's server has come up"))
}

pub(crate) fn kill(mut owner: Child) {
    owner.kill().unwrap();
    owner.wait().unwrap();
}

/// How many containers there are that a process owns, running or not.
pub(crate) fn containers_of(owner: u32) -> usize {
    listed(&["ps", "--all"], owner).len()
}

/// The one container that has this folder of the host.
pub(crate) fn container_with(folder: &Path) -> String {
    let filter = format!("volume={}", folder.display());
    let mut all = docker(&["ps", "--all", "--quiet", "--filter", &filter]);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// How many networks there are that a process owns.
pub(crate) fn networks_of(owner: u32) -> usize {
    listed(&["network", "ls"], owner).len()
}

/// What a template makes of a container.
pub(crate) fn inspect(container: &str, template: &str) -> String {
    docker(&["inspect", "--format", template, container]).concat()
}

/// The names of all volumes.
pub(crate) fn volumes() -> Vec<String> {
    docker(&["volume", "ls", "--quiet"])
}

fn listed(list: &[&str], owner: u32) -> Vec<String> {
    let label = format!("label=lease.owner={owner}");
    docker(&[list, &["--quiet", "--filter", &label]].concat())
}

fn docker(arguments: &[&str]) -> Vec<String> {
    let output = Command::new("docker").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Whether anything listens at the address of a URL.
pub(crate) fn takes_connections(url: &str) -> bool {
    let (_, place) = url.split_once('@').unwrap();
    TcpStream::connect(place.split('/').next().unwrap()).is_ok()
}

/// Usually this takes a quarter of a second, but a disk that others keep busy removes a folder slowly.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("thirty seconds later it is still not so that {what}");
}

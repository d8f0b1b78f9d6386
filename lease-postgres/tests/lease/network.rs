//! A way to a server on which packets can be dropped: from the client over a virtual link into a network namespace, to
//! a relay in it, and over the same link back to a relay of ours before the server.
//!
//! The namespace has no name and ends with the process in it, and the link with the namespace. So nothing stays behind,
//! also after a test that was killed.

use std::process::Command;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::child::{Part, Process};
use crate::relay::{Relay, elsewhere, server};

/// Where the relay listens, inside.
const PORT: u16 = 5432;

pub(crate) struct Network {
    /// The database, by way of the namespace.
    pub(crate) url: String,
    process: Process,
}

impl Network {
    /// Needs root and the programs `ip`, `unshare` and `nsenter`: a test without them fails.
    ///
    /// The process inside is the test of that name once more, which then calls [`relay`].
    pub(crate) async fn before(url: &str, test: &str) -> Self {
        run("test $(id -u) = 0 && command -v ip && command -v unshare && command -v nsenter");
        let mut process = Process::start(&["unshare", "--net"], test, url, "");
        let id = process.id();
        // Names and addresses that two tests at once do not share: process numbers differ.
        let link = format!("lease{id}");
        let net = format!("10.{}.{}", 64 + id / 64 / 256 % 128, id / 64 % 256);
        let (ours, theirs) = (id % 64 * 4 + 1, id % 64 * 4 + 2);
        // Only when it has said so is it in its namespace.
        process.says("inside");
        let inside = format!("nsenter --net --target {id}");
        run(&format!("ip link add {link} type veth peer name eth0 netns {id}"));
        run(&format!(
            "ip addr add {net}.{ours}/30 dev {link} && ip link set {link} up"
        ));
        run(&format!(
            "{inside} ip addr add {net}.{theirs}/30 dev eth0 && {inside} ip link set eth0 up"
        ));
        let before_the_server = Relay::before(url, &format!("{net}.{ours}")).await;
        process.go_on(server(&before_the_server.url));
        process.says("listening");
        Self {
            url: elsewhere(url, &format!("{net}.{theirs}:{PORT}")),
            process,
        }
    }

    /// With the far side's link down, what either side sends goes nowhere, and nobody is told.
    pub(crate) fn drop_packets(&self, dropped: bool) {
        let state = if dropped { "down" } else { "up" };
        let id = self.process.id();
        run(&format!("nsenter --net --target {id} ip link set eth0 {state}"));
    }
}

impl Drop for Network {
    /// Else the link would stay for as long as the system tries to send what was on its way.
    fn drop(&mut self) {
        let link = format!("lease{}", self.process.id());
        let _ = Command::new("ip").args(["link", "del", &link]).status();
    }
}

fn run(command: &str) {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "this test needs root and iproute2: {command}: {said}"
    );
}

/// The part of the process in the namespace.
pub(crate) async fn relay() {
    Part::say("inside");
    let server = Part::waits();
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await.unwrap();
    Part::ends_with_its_parent();
    Part::say("listening");
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let server = server.clone();
        tokio::spawn(async move {
            if let Ok(mut server) = TcpStream::connect(server).await {
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}

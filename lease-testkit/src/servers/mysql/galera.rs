use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testcontainers::ImageExt;

use super::admin::{self, MysqlAdmin};
use super::options::{argument, options};
use super::{Dialect, MARIADB_VERSION, Mysql};
use crate::servers::admin::Admin;
use crate::servers::command::output;
use crate::servers::container::{self, Container, random_name};
use crate::servers::network::Network;
use crate::servers::server::Server;
use crate::servers::{ServerError, Settings, image, ports};

/// For how long a node is silent, unless a test says otherwise, until the others go on without it.
const SUSPECT_AFTER: Duration = Duration::from_secs(2);

/// How long one node may take to say how large the cluster is.
const SIZE_LIMIT: Duration = Duration::from_secs(2);

/// A cluster of MariaDB servers that replicate to each other with Galera, in containers on a network of their own.
///
/// Its image is the one that `cargo xtask images` builds. Three nodes take 13 to 20 seconds. Dropping it ends all of it.
#[derive(Debug)]
pub struct Galera {
    nodes: Vec<Node>,
    // After the nodes, for it can't go before them.
    _network: Network,
}

#[derive(Debug)]
struct Node {
    server: Mysql,
    container: String,
    /// Whether its link is down.
    cut_off: AtomicBool,
}

impl Galera {
    /// Forms a cluster, whose nodes are counted from 0. It goes on without a node that was silent for two seconds.
    ///
    /// # Errors
    /// [`ServerError::Missing`] without a Docker engine or the image, [`ServerError::NotReady`] if a node has not joined within 60
    /// seconds, and any other error of the steps between.
    pub fn start(nodes: usize) -> Result<Self, ServerError> {
        Self::start_with(nodes, SUSPECT_AFTER, &Settings::default())
    }

    /// As [`start`](Self::start), with the time after which a silent node is suspected to be gone, to milliseconds (twice that if
    /// not all of the others suspect it), and settings for each node.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Panics
    /// Without a node, or if the settings have sockets, which the nodes can't share.
    pub fn start_with(nodes: usize, suspect_after: Duration, settings: &Settings) -> Result<Self, ServerError> {
        assert!(nodes > 0, "a cluster has a node");
        assert!(settings.sockets.is_none(), "the nodes can't share a folder of sockets");
        let network = Network::create()?;
        let name = random_name("galera");
        let names: Vec<String> = (0..nodes).map(|index| format!("{name}-{index}")).collect();
        let plan = Plan {
            network: &network.name,
            password: settings.password_or_random(),
            options: wsrep_options(&names, suspect_after),
            settings,
        };
        let nodes = names.into_iter().enumerate();
        Ok(Self {
            nodes: nodes
                .map(|(index, name)| plan.node(index, name))
                .collect::<Result<_, _>>()?,
            _network: network,
        })
    }

    /// One node, as a server like any other.
    ///
    /// What is written on one is on the others a moment later; `SET SESSION wsrep_sync_wait = 1` waits for it before a read.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn node(&self, index: usize) -> &Mysql {
        &self.nodes[index].server
    }

    /// How many nodes are in the cluster's primary component, as the first node says that is in it; 0 if none is.
    #[must_use]
    pub fn size(&self) -> usize {
        // A node outside of it refuses this.
        let text =
            "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'WSREP_CLUSTER_SIZE'";
        let size = |node: &Node| {
            let admin = &node.server.server.admin;
            let answer = admin.sql(text, "say how large the cluster is", SIZE_LIMIT).ok()?;
            answer.first()?.parse().ok()
        };
        self.nodes.iter().find_map(size).unwrap_or(0)
    }

    /// Kills a node at once, as a loss of power does.
    ///
    /// # Errors
    /// [`ServerError::Docker`] or [`ServerError::Program`] if the system refuses.
    ///
    /// # Panics
    /// As [`node`](Self::node).
    pub fn kill(&self, index: usize) -> Result<(), ServerError> {
        self.node(index).kill()
    }

    /// Starts a killed or stopped node again, and waits until it has joined the others, of which one must be there.
    ///
    /// # Errors
    /// [`ServerError::NotReady`] if it has not joined within 60 seconds.
    ///
    /// # Panics
    /// As [`node`](Self::node).
    pub fn restart(&self, index: usize) -> Result<(), ServerError> {
        self.node(index).start()
    }

    /// Cuts a node off from the other nodes, not from its clients: soon it refuses their statements with error 1047.
    ///
    /// # Errors
    /// [`ServerError::Sql`] if it refuses, [`ServerError::TimedOut`] if it is silent.
    ///
    /// # Panics
    /// As [`node`](Self::node).
    pub fn isolate(&self, index: usize) -> Result<(), ServerError> {
        self.set_isolated(index, true)
    }

    /// Cuts a node off from everybody: what the other nodes, its clients and it itself send goes nowhere, and nobody is told.
    ///
    /// # Errors
    /// [`ServerError::Program`] if the system refuses. This takes root and iproute2, and an engine on this machine.
    ///
    /// # Panics
    /// As [`node`](Self::node).
    pub fn cut_off(&self, index: usize) -> Result<(), ServerError> {
        self.nodes[index].link("down")?;
        self.nodes[index].cut_off.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Takes back [`isolate`](Self::isolate) or [`cut_off`](Self::cut_off), and waits until the node answers statements.
    ///
    /// # Errors
    /// [`ServerError::NotReady`] if it is not back within 60 seconds; those of what it takes back.
    ///
    /// # Panics
    /// As [`node`](Self::node).
    pub fn reconnect(&self, index: usize) -> Result<(), ServerError> {
        let node = &self.nodes[index];
        if node.cut_off.load(Ordering::SeqCst) {
            node.link("up")?;
            node.cut_off.store(false, Ordering::SeqCst);
        }
        self.set_isolated(index, false)?;
        node.server.server.wait()
    }

    fn set_isolated(&self, index: usize, isolated: bool) -> Result<(), ServerError> {
        let isolated = u8::from(isolated);
        let text = format!("SET GLOBAL wsrep_provider_options = 'gmcast.isolate={isolated}'");
        self.node(index).sql(&text).map(drop)
    }
}

impl Node {
    /// Takes the container's link down or up, in its network namespace.
    fn link(&self, state: &str) -> Result<(), ServerError> {
        let mut inspect = Command::new("docker");
        inspect.args(["container", "inspect", "--format", "{{.State.Pid}}", &self.container]);
        let pid = output(inspect, "find the process of a container")?;
        let mut link = Command::new("nsenter");
        link.args(["--net", "--target", &pid, "ip", "link", "set", "eth0", state]);
        output(link, "cut off a node").map(drop)
    }
}

/// What the nodes of one cluster have in common.
struct Plan<'a> {
    network: &'a str,
    password: String,
    options: Vec<(String, String)>,
    settings: &'a Settings,
}

impl Plan<'_> {
    /// Starts a node and waits until it has joined the ones before it.
    fn node(&self, index: usize, name: String) -> Result<Node, ServerError> {
        let dialect = Dialect::MariaDb;
        let known = dialect.image();
        let tag = env::var(MARIADB_VERSION).unwrap_or_else(|_| known.version.to_owned());
        let image = image::built(dialect.name(), known.ours, tag)?;
        let port = ports::free()?;
        let place = if index == 0 { "first" } else { "next" };
        let command = ["galera-node.sh", place].map(str::to_owned);
        let list = options(dialect, self.settings).into_iter();
        let arguments = list
            .chain(container::files(self.settings))
            .chain(self.options.iter().cloned())
            .map(argument);
        let request = container::server(image, command.into_iter().chain(arguments), self.settings, port, 3306)
            .with_network(self.network)
            .with_env_var("MYSQL_ROOT_PASSWORD", &self.password);
        let url = format!("mysql://root:{}@127.0.0.1:{port}/{}", self.password, admin::SYSTEM);
        let admin = MysqlAdmin::new(dialect, &url)?;
        let instance = Box::new(Container::named(&name, request));
        Ok(Node {
            server: Mysql::of(Server::started(url, admin, instance)?),
            container: name,
            cut_off: AtomicBool::new(false),
        })
    }
}

fn wsrep_options(names: &[String], suspect_after: Duration) -> Vec<(String, String)> {
    let seconds = |share: f64| format!("PT{:.3}S", suspect_after.as_secs_f64() * share);
    let provider = format!(
        "gcache.size=16M;evs.suspect_timeout={};evs.inactive_timeout={};evs.inactive_check_period={};\
         evs.keepalive_period={};gmcast.peer_timeout={}",
        seconds(1.0),
        seconds(2.0),
        seconds(0.1),
        seconds(0.15),
        seconds(0.5),
    );
    let options = [
        ("wsrep_on", "ON"),
        ("wsrep_provider", "/usr/lib/galera/libgalera_smm.so"),
        // With this plugin its options could not be changed while it runs. Older versions do not know it.
        ("loose_plugin_wsrep_provider", "OFF"),
        ("wsrep_provider_options", &provider),
        ("wsrep_cluster_address", &format!("gcomm://{}", names.join(","))),
        ("wsrep_sst_method", "rsync"),
        ("binlog_format", "ROW"),
        ("innodb_autoinc_lock_mode", "2"),
    ];
    options
        .map(|(option, value)| (option.to_owned(), value.to_owned()))
        .into()
}

//! A world: servers, pods, and what is done to them, from one seed.

mod pods;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lease_core::{BootClock, Clock, Moment};
use lease_mysql::MysqlRepo;
use lease_postgres::PostgresRepo;

use crate::admin::{Crowd, PASSWORD, database};
use crate::check::{Seen, Struck, check};
use crate::engine::{Engine, PODS, TTL, names};
use crate::fault::{Kind, Plan, Schedule};
use crate::line::now;
use crate::net::{HUB, done, make_hub};
use crate::pod::Mutant;
use crate::relay::Relay;
use crate::sampler::Sampler;
use crate::server::{Server, rest};
use crate::{journal, report};
use pods::Pod;

/// How long it is waited for a pod that is not at work again in time: then it never is.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long all pods are left alone between two faults.
const REST: Duration = Duration::from_millis(300);

/// What a world is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    engine: Engine,
    /// What the faults come from.
    #[arg(long)]
    seed: u64,
    /// Ends after so many faults.
    #[arg(long)]
    faults: Option<usize>,
    /// Ends after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Only these kinds of faults.
    #[arg(long)]
    kind: Vec<Kind>,
    /// A folder for what pods and servers write.
    #[arg(long)]
    out: PathBuf,
    /// The files of an image with the server's programs.
    #[arg(long)]
    root: Option<PathBuf>,
    /// What the pods do wrong on purpose.
    #[arg(long)]
    mutant: Option<Mutant>,
}

/// Everything that can be broken.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) servers: Vec<Server>,
    pub(crate) pods: Vec<Pod>,
    /// With the pod that each is of.
    pub(crate) relays: Vec<(usize, Relay)>,
    /// Which server takes writes.
    pub(crate) primary: Arc<AtomicUsize>,
    /// Who has taken the service's connections.
    pub(crate) crowd: Option<Crowd>,
    out: PathBuf,
    mutant: Option<Mutant>,
    deaths: HashMap<u32, u64>,
}

/// The verb.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    end_with_our_parent();
    std::fs::create_dir_all(&args.out)?;
    let mut world = World::new(&args).await?;
    let addresses = world.servers.iter().map(|server| server.node.address.clone()).collect();
    let sampler = Sampler::start(args.engine, addresses, world.primary.clone());
    world.recovered(BootClock.now()).await?;
    let started = BootClock.now();
    let mut schedule = Schedule::new(args.engine, args.seed, &args.kind);
    let mut struck = Vec::new();
    while args.faults.is_none_or(|faults| struck.len() < faults)
        && args
            .seconds
            .is_none_or(|seconds| BootClock.now().since(started).as_secs() < seconds)
    {
        struck.extend(world.round(&schedule.next()).await?);
        BootClock.sleep_until(BootClock.now() + REST).await;
    }
    for pod in 0..PODS {
        world.kill_pod(pod)?;
    }
    let (looks, stuck) = sampler.found();
    let mut seen = Seen {
        struck,
        stuck,
        deaths: std::mem::take(&mut world.deaths),
        fence_is_a_column: args.engine == Engine::Galera,
        ..Seen::default()
    };
    for pod in &mut world.pods {
        seen.pods.push(pod.all_lines()?);
    }
    let primary = world.primary.load(Ordering::SeqCst);
    for name in names() {
        let tokens = journal::tokens(&mut world.servers[primary].admin, args.engine, &name).await?;
        seen.journal.insert(name, tokens);
    }
    let seconds = BootClock.now().since(started).as_secs();
    report::print(&args.out, args.engine, args.seed, seconds, looks, &seen, &check(&seen))?;
    Ok(ExitCode::SUCCESS)
}

impl World {
    async fn new(args: &Args) -> anyhow::Result<Self> {
        make_hub()?;
        let engine = args.engine;
        if let Some(root) = &args.root {
            prepare(root)?;
        }
        let mut servers = Vec::new();
        for index in 0..engine.servers() {
            servers.push(Server::new(engine, index, args.root.as_deref(), &args.out)?);
        }
        let mut relays = Vec::new();
        for pod in 0..PODS {
            for (index, server) in servers.iter().enumerate() {
                // A cluster's node for each pod; of a primary and its standby both.
                if engine != Engine::Galera || index == pod {
                    let port = u16::try_from(7_000 + pod * 10 + index)?;
                    relays.push((pod, Relay::new(port, server.socket()).await?));
                }
            }
        }
        let mut world = Self {
            engine,
            servers,
            pods: Vec::new(),
            relays,
            primary: Arc::default(),
            crowd: None,
            out: args.out.clone(),
            mutant: args.mutant,
            deaths: HashMap::new(),
        };
        world.start_servers().await?;
        for pod in 0..PODS {
            let node = crate::net::Node::new(u8::try_from(11 + pod)?)?;
            world.pods.push(Pod::new(pod, node, &args.out));
            world.start_pod(pod)?;
        }
        Ok(world)
    }

    async fn start_servers(&mut self) -> anyhow::Result<()> {
        self.servers[0].make()?;
        self.servers[0].start().await?;
        if self.engine.is_postgres() {
            let admin = &mut self.servers[0].admin;
            admin.sql("CREATE ROLE service LOGIN").await?;
            admin.sql("GRANT ALL ON SCHEMA public TO service").await?;
        }
        let url = self.url(&[self.servers[0].socket()]);
        if self.engine.is_postgres() {
            PostgresRepo::connect(&url).await?.migrate().await?;
        } else {
            MysqlRepo::connect(&url).await?.migrate().await?;
        }
        for statement in journal::schema(self.engine) {
            self.servers[0].admin.sql(&statement).await?;
        }
        match self.engine {
            Engine::PostgresStandby => self.follow().await,
            Engine::Galera => {
                for node in 1..self.servers.len() {
                    self.servers[node].make()?;
                    self.servers[node].start().await?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The service's URL of these hosts.
    fn url(&self, hosts: &[String]) -> String {
        let (hosts, database) = (hosts.join(","), database(self.engine));
        if self.engine.is_postgres() {
            let wanted = if self.engine == Engine::PostgresStandby {
                "?target_session_attrs=read-write"
            } else {
                ""
            };
            format!("postgres://service@{hosts}/{database}{wanted}")
        } else {
            format!("mysql://service:{PASSWORD}@{hosts}/{database}?ssl-mode=disabled")
        }
    }

    pub(crate) fn relays_of(&self, pod: usize) -> impl Iterator<Item = &Relay> {
        self.relays
            .iter()
            .filter(move |(of, _)| *of == pod)
            .map(|(_, relay)| relay)
    }

    pub(crate) fn start_pod(&mut self, pod: usize) -> anyhow::Result<()> {
        let hosts: Vec<String> = self
            .relays_of(pod)
            .map(|relay| format!("{HUB}:{}", relay.port))
            .collect();
        let url = self.url(&hosts);
        self.pods[pod].start(self.engine, &url, self.mutant, &self.out)
    }

    pub(crate) fn kill_pod(&mut self, pod: usize) -> anyhow::Result<()> {
        if let Some(pid) = self.pods[pod].kill()? {
            // It was dead before this.
            self.deaths.insert(pid, now());
        }
        Ok(())
    }

    /// One or two faults at once, and the time until every pod is at work again.
    async fn round(&mut self, plans: &[Plan]) -> anyhow::Result<Vec<Struck>> {
        let mut struck: Vec<Struck> = Vec::new();
        for plan in plans {
            struck.push(Struck {
                kind: plan.kind,
                target: plan.target,
                from: now(),
                until: u64::MAX,
                recovered_ms: None,
            });
            self.begin(plan).await?;
        }
        // Making that one takes its time.
        let to_wait = plans.iter().filter(|plan| plan.kind != Kind::FailoverLosingCommits);
        let mut longest = to_wait.map(|plan| plan.lasts).max().unwrap_or_default();
        if self.mutant.is_some() {
            // Long enough for another pod to take over.
            longest = longest.max(TTL * 3 / 2);
        }
        BootClock.sleep_until(BootClock.now() + longest).await;
        for (plan, struck) in plans.iter().zip(&mut struck) {
            self.heal(plan).await?;
            struck.until = now();
        }
        let healed = BootClock.now();
        let recovered = self.recovered(healed).await?;
        for (plan, struck) in plans.iter().zip(&mut struck) {
            struck.recovered_ms = recovered;
            self.repair(plan).await?;
            eprintln!("{} {struck:?}", self.engine_name());
        }
        Ok(struck)
    }

    fn engine_name(&self) -> String {
        format!("{:?}", self.engine).to_lowercase()
    }

    /// Waits until every pod has begun a tenure of its own lease after the servers were healed, and says after how many
    /// milliseconds that was.
    ///
    /// A cluster may fall apart once more a moment after a node is back, since it goes by what it suspected before. No node takes
    /// statements then, which is that fault still: it counts from when the cluster is whole.
    async fn recovered(&mut self, healed: Moment) -> anyhow::Result<Option<u64>> {
        let mut since = healed;
        loop {
            let mut slowest = Some(0);
            for pod in &mut self.pods {
                anyhow::ensure!(pod.runs(), "pod-{} has ended by itself", pod.number + 1);
                let first = pod.first_own_after(since.as_nanos())?;
                slowest = slowest
                    .zip(first)
                    .map(|(slowest, first): (u64, u64)| slowest.max(first));
            }
            if let Some(at) = slowest {
                return Ok(Some(at.saturating_sub(since.as_nanos()) / 1_000_000));
            }
            if !self.agree().await {
                eprintln!("{} fell apart once more", self.engine_name());
                self.is_whole().await?;
                since = BootClock.now();
            }
            if BootClock.now() > since + PATIENCE {
                return Ok(None);
            }
            rest().await;
        }
    }
}

/// What programs expect of a machine, in the mount namespace of the world.
fn prepare(root: &Path) -> anyhow::Result<()> {
    done(
        Command::new("mount")
            .args(["-t", "proc", "proc"])
            .arg(root.join("proc")),
    )?;
    done(Command::new("mount").args(["--rbind", "/dev"]).arg(root.join("dev")))
}

/// Whoever started us holds the other end of our input.
fn end_with_our_parent() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}

/// How long after the last fault every pod must be at work.
pub(crate) const fn recovery_limit() -> Duration {
    TTL.saturating_mul(2)
}

//! A cluster of MariaDB with Galera, where each node takes writes: conflicts show when a transaction commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use lease_core::{Acquire, BootClock, Clock, Lease, Release, Renew, Repo, RepoErrorKind};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::{Galera, MysqlDatabase};

use crate::support::{chain, claim};

const S: Duration = Duration::from_secs(1);

const NODES: usize = 3;

/// Of each node.
const CONTENDERS: usize = 8;

/// Rounds of two herds each. 200 take minutes, and are for measurements: `LEASE_HERD_ROUNDS=200`.
const ROUNDS: usize = 10;

/// How long the cluster needs until it goes on without a node that is silent, as it is started here, at the most.
const EVICTION: Duration = Duration::from_secs(4);

struct Cluster {
    database: MysqlDatabase,
    urls: Vec<String>,
    // After the database, which is dropped on it.
    nodes: Galera,
}

impl Cluster {
    async fn start() -> Self {
        let nodes = Galera::start(NODES).unwrap();
        let database = nodes.node(1).database().unwrap();
        let urls = (0..NODES).map(|node| {
            nodes
                .node(node)
                .url()
                .replace("/mysql", &format!("/{}", database.name()))
        });
        let cluster = Self {
            urls: urls.collect(),
            database,
            nodes,
        };
        cluster.repo(0).await.migrate().await.unwrap();
        cluster
    }

    async fn repo(&self, node: usize) -> MysqlRepo {
        MysqlRepo::connect(&self.urls[node]).await.unwrap()
    }
}

/// One test, since a cluster takes long to start.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MariaDB with Galera: cargo xtask test"]
async fn on_a_galera_cluster_one_wins_and_the_loss_of_a_node_lets_nobody_overlap() {
    let cluster = Cluster::start().await;
    one_of_many_on_three_nodes_wins(&cluster).await;
    a_grant_is_known_on_each_node_at_once(&cluster).await;
    an_isolated_node_is_unavailable(&cluster).await;
    nobody_overlaps(&cluster, "cut off", || cluster.nodes.cut_off(0).unwrap()).await;
    cluster.nodes.reconnect(0).unwrap();
    nobody_overlaps(&cluster, "killed", || cluster.nodes.kill(0).unwrap()).await;
}

async fn one_of_many_on_three_nodes_wins(cluster: &Cluster) {
    let rounds = std::env::var("LEASE_HERD_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let mut repos = Vec::new();
    for node in 0..NODES {
        repos.push(Arc::new(cluster.repo(node).await));
    }
    for round in 0..rounds {
        for expired in [false, true] {
            if expired {
                let text = "SET SESSION wsrep_sync_wait = 3; UPDATE task_leases SET expires_at = UTC_TIMESTAMP(6)";
                cluster.database.sql(text).unwrap();
            }
            let tries = (0..NODES * CONTENDERS).map(|at| {
                let (repo, claim) = (repos[at % NODES].clone(), claim(&format!("job {round}")));
                tokio::spawn(async move { (repo.acquire(&claim).await, claim) })
            });
            let mut winners = Vec::new();
            for one in join_all(tries).await {
                let (answer, claim) = one.unwrap();
                match answer {
                    Ok(Acquire::Granted(_)) => winners.push(claim),
                    Ok(Acquire::Busy(_)) => {}
                    Err(error) => panic!("round {round}, expired {expired}: {}", chain(&error)),
                }
            }
            assert_eq!(winners.len(), 1, "round {round}, expired {expired}");
            for repo in &repos {
                assert_eq!(repo.renew(&winners[0]).await.unwrap(), Renew::Renewed);
            }
        }
    }
}

/// A pod whose connection moves to another node finds what it did on the first one.
async fn a_grant_is_known_on_each_node_at_once(cluster: &Cluster) {
    let (here, there) = (cluster.repo(0).await, cluster.repo(1).await);
    for _ in 0..50 {
        let held = claim("moves");
        assert!(matches!(here.acquire(&held).await.unwrap(), Acquire::Granted(_)));
        assert_eq!(there.renew(&held).await.unwrap(), Renew::Renewed);
        assert!(matches!(
            there.acquire(&claim("moves")).await.unwrap(),
            Acquire::Busy(Some(_))
        ));
        assert_eq!(there.release(&held).await.unwrap(), Release::Released);
        assert_eq!(here.release(&held).await.unwrap(), Release::NotHeld);
    }
}

/// 1047. Real waits, until the node notices.
async fn an_isolated_node_is_unavailable(cluster: &Cluster) {
    let repo = cluster.repo(2).await;
    let mut held = claim("held by a pod whose node is isolated");
    // A node may need most of a minute until it is back.
    held.ttl = 600 * S;
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    cluster.nodes.isolate(2).unwrap();
    let error = loop {
        match repo.renew(&held).await {
            Err(error) if error.kind() == RepoErrorKind::Unavailable => break error,
            // It has not noticed yet, and waits for the others' votes.
            Ok(_) | Err(_) => {}
        }
    };
    assert!(error.may_have_executed(), "{}", chain(&error));
    cluster.nodes.reconnect(2).unwrap();
    assert_eq!(repo.renew(&held).await.unwrap(), Renew::Renewed);
}

/// The holder is on node 0, which is lost; the next one on node 1. Real waits, for a ttl or the cluster to go on, whichever is
/// longer, and two seconds.
async fn nobody_overlaps(cluster: &Cluster, what: &str, lose: impl FnOnce()) {
    const TTL: Duration = Duration::from_secs(6);
    let clock = BootClock;
    let next = cluster.repo(1).await;
    let lease = Lease::new(cluster.repo(0).await);
    let inside = Arc::new(AtomicBool::new(false));
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let in_f = Inside(inside.clone());
    let job = lease.job(what, TTL).unwrap();
    let running = tokio::spawn(async move {
        job.run(async move |_held| {
            in_f.0.store(true, Ordering::SeqCst);
            let _guard = in_f;
            begun.send(()).unwrap();
            std::future::pending::<()>().await;
        })
        .await
    });
    has_begun.await.unwrap();
    let start = clock.now();
    lose();
    let successor = claim(what);
    loop {
        // An error says that the cluster has not gone on yet.
        if let Ok(Acquire::Granted(_)) = next.acquire(&successor).await {
            break;
        }
        let waited = clock.now().since(start);
        assert!(
            waited < TTL.max(EVICTION) + 2 * S,
            "{what}: nobody took it over within {waited:?}"
        );
    }
    assert!(
        !inside.load(Ordering::SeqCst),
        "{what}: the holder was at it when the next one was granted it"
    );
    eprintln!(
        "{what}: taken over after {:?}, with a ttl of {TTL:?}",
        clock.now().since(start)
    );
    drop(running.await.unwrap());
}

/// Says that f is gone when it is dropped.
struct Inside(Arc<AtomicBool>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

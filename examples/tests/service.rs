//! The service, as processes beside each other, and its endpoints.

mod support;

#[path = "../src/bin/service.rs"]
#[allow(dead_code, reason = "its `main` is run as a process")]
mod service;

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lease_core::{Held, Lease, LeaseName, MemoryRepo};
use lease_postgres::PostgresRepo;
use lease_testkit::servers::{Database, Postgres};
use metrics_exporter_prometheus::PrometheusBuilder;
use nix::sys::signal::Signal;
use support::{Program, eventually, get};
use tokio_util::sync::CancellationToken;

struct Service {
    program: Program,
    address: String,
}

impl Service {
    fn start(url: &str) -> Self {
        let program = Program::start(&mut command(url));
        let address = program.says("listening address=");
        Self { program, address }
    }

    /// A series as the exporter writes it.
    fn metric(&self, series: &str) -> f64 {
        let (status, text) = get(&self.address, "/metrics");
        assert_eq!(status, 200);
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    fn runs(&self) -> Vec<i64> {
        let lines = self.program.said("tidying up token=");
        lines
            .iter()
            .map(|line| line.rsplit_once('=').unwrap().1.parse().unwrap())
            .collect()
    }
}

fn command(url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_service"));
    command
        .env("LEASE_URL", url)
        .env("LISTEN", "127.0.0.1:0")
        .env("TIDY_EVERY_MS", "300");
    command
}

const GRANTED: &str = "lease_acquire_total{lease=\"reaper\",result=\"granted\"}";

/// Three pods share the work, each shows its metrics, and each ends in order.
#[track_caller]
fn three_pods_share_the_work(url: &str) {
    let mut pods = [(); 3].map(|()| Service::start(url));
    let runs = |pods: &[Service]| pods.iter().flat_map(Service::runs).collect::<Vec<_>>();
    eventually("eight runs", || runs(&pods).len() >= 8);
    for pod in &pods {
        assert_eq!(get(&pod.address, "/healthz"), (200, "ok".into()));
        assert_eq!(get(&pod.address, "/readyz"), (200, "ok".into()));
        let counted = || pod.metric(GRANTED) >= pod.runs().len() as f64 - 1.0;
        eventually("the runs in the metrics", counted);
        let skipped = || pod.metric("lease_skipped_total{lease=\"reaper\",cause=\"busy\"}");
        eventually("a turn of another's", || skipped() > 0.0);
        let errors = pod.metric("lease_skipped_total{lease=\"reaper\",cause=\"store\"}");
        assert!(errors.abs() < 0.5, "the store always answered");
    }
    // The rest of the work falls to those who are left.
    pods[0].program.signal(Signal::SIGTERM);
    assert!(pods[0].program.ends().success());
    let so_far = runs(&pods).len();
    eventually("runs by those who are left", || runs(&pods).len() >= so_far + 3);
    for pod in &mut pods[1..] {
        pod.program.signal(Signal::SIGTERM);
        assert!(pod.program.ends().success());
        pod.program.says("ended");
    }
    let mut tokens = runs(&pods);
    let all = tokens.len();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), all, "each run has a token of its own");
}

#[test]
fn pods_on_a_file_share_the_work() {
    let folder = tempfile::tempdir().unwrap();
    three_pods_share_the_work(&format!("sqlite:{}", folder.path().join("leases.db").display()));
}

/// A role that has what `grants.sql` gives, and goes when this does.
struct Role<'a> {
    database: &'a Database,
    name: String,
}

impl<'a> Role<'a> {
    fn new(database: &'a Database) -> Self {
        let name = format!("pod_of_{}", database.name());
        database
            .sql(&format!("CREATE ROLE {name} LOGIN PASSWORD 'pod'"))
            .unwrap();
        Self { database, name }
    }

    fn grant(&self) {
        let grants = include_str!("../k8s/grants.sql");
        assert_eq!(grants.matches(":\"role\"").count(), 1);
        self.database.sql(&grants.replace(":\"role\"", &self.name)).unwrap();
    }

    fn may(&self, what: &str) -> bool {
        let query = format!(
            "SELECT has_table_privilege('{}', 'task_leases', '{what}')::text",
            self.name
        );
        self.database.sql(&query).unwrap() == ["true"]
    }

    fn url(&self) -> String {
        let (_, place) = self.database.url().rsplit_once('@').expect("a URL with a user");
        format!("postgres://{}:pod@{place}", self.name)
    }
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        let _ = self
            .database
            .sql(&format!("DROP OWNED BY {0}; DROP ROLE {0}", self.name));
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn pods_of_a_role_with_the_least_grants_share_the_work() {
    let database = Postgres::shared().unwrap().database().unwrap();
    PostgresRepo::connect(database.url())
        .await
        .unwrap()
        .migrate()
        .await
        .unwrap();
    let role = Role::new(&database);
    role.grant();
    assert!(["SELECT", "INSERT", "UPDATE"].iter().all(|right| role.may(right)));
    assert!(
        !["DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]
            .iter()
            .any(|right| role.may(right))
    );
    three_pods_share_the_work(&role.url());
}

/// Each right is needed: without it there is an error, and no run.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_pod_of_a_role_without_one_of_the_grants_runs_nothing() {
    let database = Postgres::shared().unwrap().database().unwrap();
    PostgresRepo::connect(database.url())
        .await
        .unwrap()
        .migrate()
        .await
        .unwrap();
    let role = Role::new(&database);
    for right in ["SELECT", "INSERT", "UPDATE"] {
        role.grant();
        database
            .sql(&format!("REVOKE {right} ON task_leases FROM {}", role.name))
            .unwrap();
        let mut program = Program::start(command(&role.url()).stderr(std::process::Stdio::null()));
        // It is found at the start, or each tick says so.
        eventually(right, || {
            !program.said("kind=\"denied\"").is_empty() || program.exited()
        });
        assert!(program.said("tidying up").is_empty(), "without {right}");
    }
}

#[test]
fn a_pod_without_a_database_says_what_it_lacks() {
    let output = command("").env_remove("LEASE_URL").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && text.contains("LEASE_URL must say"),
        "{text}"
    );
}

/// Restarting helps only a pod whose work goes on without its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn liveness_fails_while_work_blocks_past_its_lease_and_readiness_does_not() {
    // Renewed every 200 ms, which is how soon a deleted row is noticed.
    const TTL: Duration = Duration::from_millis(600);
    let repo = MemoryRepo::new();
    let lease = Lease::new(repo.clone());
    let reaper = lease
        .job("reaper", TTL)
        .unwrap()
        .periodic(Duration::from_secs(1))
        .unwrap();
    let metrics = PrometheusBuilder::new().build_recorder().handle();
    let app = service::app(reaper.standing(), metrics);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(axum::serve(listener, app).into_future());
    let is = |status| assert_eq!(get(&address, "/healthz").0, status);
    is(200);

    let (release, gate) = channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let inside = Arc::<AtomicBool>::default();
    let (shutdown, entered) = (CancellationToken::new(), inside.clone());
    let work = tokio::spawn(reaper.run(shutdown.clone(), async move |_: Held| {
        entered.store(true, Ordering::SeqCst);
        // Blocks a worker, as no work should.
        let _ = gate.lock().unwrap().recv();
        Ok::<_, io::Error>(())
    }));
    eventually("the work", || inside.load(Ordering::SeqCst));
    is(200);
    repo.delete_row(&LeaseName::from_static("reaper"));
    eventually("unhealthy", || get(&address, "/healthz").0 == 503);
    assert_eq!(get(&address, "/readyz").0, 200);
    shutdown.cancel();
    drop(release);
    work.await.unwrap();
    is(200);
}

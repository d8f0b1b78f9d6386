//! A web service of several pods, one of which tidies up once a minute.
//!
//! `LEASE_URL` is a PostgreSQL URL, or `sqlite:FILE` for the processes of one machine. `LISTEN` is the address, by default
//! `0.0.0.0:8080`; `TIDY_EVERY_MS` the interval, by default a minute.
//!
//! - `/healthz`, for liveness: fails only while work goes on here though its lease is over. Then a restart helps.
//! - `/readyz`, for readiness: has nothing to do with the lease. A standby serves requests as well.
//! - `/metrics`, for Prometheus.

use std::env;
use std::error::Error;
use std::io;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use lease_core::{Held, Lease, LeaseName, Options, Repo, Standing};
use lease_postgres::PostgresRepo;
use lease_sqlite::SqliteRepo;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Also in the alerts and on the dashboard.
const REAPER: LeaseName = LeaseName::from_static("reaper");
/// How long a pod that dies keeps its lease.
const TTL: Duration = Duration::from_secs(30);
/// No run takes longer: without a limit, one that hangs would be renewed for ever.
const LIMIT: Duration = Duration::from_secs(300);
/// How long work may take to end on SIGTERM. With the five seconds that a release may take, it is less than the pod's
/// `terminationGracePeriodSeconds`.
const GRACE: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    // Before the first operation on a lease, whose metrics go to the recorder that is there then.
    let metrics = PrometheusBuilder::new()
        .set_buckets_for_metric(
            Matcher::Suffix("_seconds".into()),
            &[0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0],
        )?
        .install_recorder()?;
    let url = env::var("LEASE_URL").map_err(|_| "LEASE_URL must say which database keeps the leases")?;
    let lease = match url.strip_prefix("sqlite:") {
        Some(_) => {
            let repo = SqliteRepo::connect(&url).await?;
            repo.migrate().await?;
            with_metrics(repo)
        }
        None => {
            let repo = PostgresRepo::connect(&url).await?;
            // The table is made by its owner: a pod has no right to. If something is wrong with it, say so now.
            repo.check_schema().await?;
            with_metrics(repo)
        }
    };
    let every = env::var("TIDY_EVERY_MS").map_or(Ok(60_000), |text| text.parse())?;
    let reaper = lease.job(&REAPER, Options::from(TTL).time_limit(LIMIT))?;
    let reaper = reaper.periodic(Duration::from_millis(every))?;

    let listener = TcpListener::bind(env::var("LISTEN").as_deref().unwrap_or("0.0.0.0:8080")).await?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    let shutdown = CancellationToken::new();
    let server = axum::serve(listener, app(reaper.standing(), metrics))
        .with_graceful_shutdown(shutdown.clone().cancelled_owned());
    let run = tokio::spawn(reaper.run(shutdown.clone(), tidy_up));
    let work = async {
        let ended = run.await;
        // Work that panicked ends the pod, so that it is seen, and started anew.
        shutdown.cancel();
        ended
    };
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let end = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = shutdown.cancelled() => {}
        }
        shutdown.cancel();
        for name in lease.shutdown(GRACE).await {
            tracing::error!(lease = name.as_str(), "would not end: its lease is free at its expiry");
        }
    };
    let (served, worked, ()) = tokio::join!(server.into_future(), work, end);
    served?;
    worked?;
    tracing::info!("ended");
    Ok(())
}

/// The work. What is to be done only once checks `held` before it, or sends `held.token()` along.
async fn tidy_up(held: Held) -> io::Result<()> {
    tracing::info!(token = held.token().get(), "tidying up");
    Ok(())
}

fn with_metrics(repo: impl Repo) -> Lease {
    Lease::builder(repo).metrics_per_lease([REAPER]).build()
}

/// The endpoints.
pub fn app(standing: Standing, metrics: PrometheusHandle) -> Router {
    let health = move || async move {
        if standing.is_healthy() {
            (StatusCode::OK, "ok")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "work goes on though its lease is over")
        }
    };
    let metrics = move || async move {
        metrics.run_upkeep();
        metrics.render()
    };
    Router::new()
        .route("/healthz", get(health))
        .route("/readyz", get(async || "ok"))
        .route("/metrics", get(metrics))
}

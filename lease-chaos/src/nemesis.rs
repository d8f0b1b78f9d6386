//! The nemesis: makes a fault, and takes it back.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::bail;
use lease_core::{BootClock, Clock};
use nix::sys::signal::Signal;

use crate::admin::Crowd;
use crate::engine::Engine;
use crate::fault::{Kind, Plan};
use crate::net::Way;
use crate::server::{CONNECTIONS, Server, rest};
use crate::world::World;

/// How far a clock steps at most, in seconds, that steps by less than the drift: half of it each way, with room for what its pods
/// and the server are apart anyway.
const WITHIN: f64 = 0.04;
/// How far a clock steps at least that steps by more, in seconds: whatever was renewed in time has expired.
const BEYOND: f64 = 2.5;
/// How late bytes are at least, each way.
const LATE: Duration = Duration::from_millis(20);
/// How long a standby may take to have caught up.
const CATCH_UP: Duration = Duration::from_secs(180);

const SESSIONS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'service'";

impl World {
    /// Makes a fault.
    pub(crate) async fn begin(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let Plan { kind, target, .. } = *plan;
        if kind.is_of_a_pod() {
            return self.begin_of_pod(plan);
        }
        let engine = self.engine;
        let index = self.struck_server(plan);
        match kind {
            Kind::AllDelayed => self.relays.iter().for_each(|(_, relay)| relay.delay(late(plan) / 2)),
            Kind::ServerRestarted => self.servers[index].stop().await?,
            Kind::ServerKilled | Kind::Failover => self.servers[index].kill().await?,
            Kind::ServerFrozen => self.servers[index].freeze(true)?,
            Kind::ServerCutOff => self.servers[index].node.cut(Way::Both, None)?,
            Kind::ServerUnheard => self.servers[index].node.cut(Way::Out, None)?,
            Kind::ServerDeaf => self.servers[index].node.cut(Way::In, None)?,
            Kind::ClockStepsWithin => self.servers[index].step_clock(plan.strength * WITHIN).await?,
            Kind::ClockStepsBeyond => {
                let ahead = plan.strength.signum() * (BEYOND + plan.strength.abs());
                self.servers[index].step_clock(ahead).await?;
            }
            Kind::ConnectionsTaken => {
                let server = &mut self.servers[index];
                end_sessions(server).await?;
                let crowd = Crowd::rush(engine, &server.node.address, 2 * CONNECTIONS).await;
                anyhow::ensure!(crowd.len() < 2 * CONNECTIONS, "{} refuses no connection", server.name());
                self.crowd = Some(crowd);
            }
            Kind::DiskFull => self.servers[index].fill_disk()?,
            Kind::ReadOnly => self.set_read_only(index, true).await?,
            Kind::FailoverLosingCommits => {
                let standby = 1 - index;
                self.set_synchronous(false).await?;
                let primary = self.servers[index].node.address.clone();
                self.servers[standby].node.cut(Way::Both, Some(&primary))?;
                // What is granted meanwhile is lost.
                BootClock.sleep_until(BootClock.now() + plan.lasts).await;
                self.servers[index].kill().await?;
            }
            Kind::StandbyCutOff => {
                let primary = self.servers[index].node.address.clone();
                self.servers[1 - index].node.cut(Way::Both, Some(&primary))?;
            }
            Kind::NodeIsolated => {
                for other in (0..self.servers.len()).filter(|other| *other != target) {
                    let address = self.servers[other].node.address.clone();
                    self.servers[target].node.cut(Way::Both, Some(&address))?;
                }
            }
            _ => bail!("{kind:?} is of a pod"),
        }
        Ok(())
    }

    fn begin_of_pod(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let pod = plan.target;
        match plan.kind {
            Kind::PodKilled => self.kill_pod(pod)?,
            Kind::PodFrozen => self.pods[pod].signal(Signal::SIGSTOP)?,
            Kind::PodCutOff => self.pods[pod].node.cut(Way::Both, None)?,
            Kind::PodUnheard => self.pods[pod].node.cut(Way::Out, None)?,
            Kind::PodDeaf => self.pods[pod].node.cut(Way::In, None)?,
            Kind::PodDelayed => self.relays_of(pod).for_each(|relay| relay.delay(late(plan))),
            Kind::RepliesLost => self.relays_of(pod).for_each(|relay| relay.lose_replies(true)),
            kind => bail!("{kind:?} is not of a pod"),
        }
        Ok(())
    }

    /// Takes a fault back: when this returns, the servers answer.
    pub(crate) async fn heal(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let Plan { kind, target, .. } = *plan;
        let index = self.struck_server(plan);
        match kind {
            Kind::PodKilled => self.start_pod(target)?,
            Kind::PodFrozen => self.pods[target].signal(Signal::SIGCONT)?,
            Kind::PodCutOff | Kind::PodUnheard | Kind::PodDeaf => self.pods[target].node.mend()?,
            Kind::PodDelayed => self.relays_of(target).for_each(|relay| relay.delay(Duration::ZERO)),
            Kind::RepliesLost => self.relays_of(target).for_each(|relay| relay.lose_replies(false)),
            Kind::AllDelayed => self.relays.iter().for_each(|(_, relay)| relay.delay(Duration::ZERO)),
            Kind::ServerRestarted | Kind::ServerKilled => self.servers[index].start().await?,
            Kind::ServerFrozen => self.servers[index].freeze(false)?,
            Kind::ServerCutOff | Kind::ServerUnheard | Kind::ServerDeaf | Kind::NodeIsolated => {
                self.servers[index].node.mend()?;
            }
            Kind::ClockStepsWithin | Kind::ClockStepsBeyond => self.servers[index].set_clock(0.0)?,
            Kind::ConnectionsTaken => self.crowd = None,
            Kind::DiskFull => self.make_room(index).await?,
            Kind::ReadOnly => self.set_read_only(index, false).await?,
            Kind::Failover | Kind::FailoverLosingCommits => {
                let next = 1 - index;
                self.servers[next].node.mend()?;
                self.servers[next].wait().await?;
                self.servers[next]
                    .admin
                    .sql_within("SELECT pg_promote(true, 10)", CATCH_UP)
                    .await?;
                self.primary.store(next, Ordering::SeqCst);
                // What it still had to follow is not there any more.
                return Ok(());
            }
            Kind::StandbyCutOff => self.servers[1 - index].node.mend()?,
        }
        if kind.is_of_a_pod() {
            return Ok(());
        }
        self.servers[index].wait().await?;
        self.in_sync().await?;
        self.is_whole().await
    }

    /// After a failover: what was the primary becomes the standby, with nothing of its own.
    pub(crate) async fn repair(&mut self, plan: &Plan) -> anyhow::Result<()> {
        if !matches!(plan.kind, Kind::Failover | Kind::FailoverLosingCommits) {
            return Ok(());
        }
        self.follow().await
    }

    /// Makes the other server a standby that each commit waits for.
    pub(crate) async fn follow(&mut self) -> anyhow::Result<()> {
        let primary = self.primary.load(Ordering::SeqCst);
        self.servers[1 - primary].copy_of(&self.servers[primary])?;
        self.servers[1 - primary].start().await?;
        self.set_synchronous(true).await?;
        self.in_sync().await
    }

    async fn set_synchronous(&mut self, is_so: bool) -> anyhow::Result<()> {
        let names = if is_so { "'*'" } else { "''" };
        let admin = &mut self.servers[self.primary.load(Ordering::SeqCst)].admin;
        admin
            .sql(&format!("ALTER SYSTEM SET synchronous_standby_names = {names}"))
            .await?;
        admin.sql("SELECT pg_reload_conf()").await.map(drop)
    }

    /// Waits until the standby has what the primary has.
    async fn in_sync(&mut self) -> anyhow::Result<()> {
        if self.engine != Engine::PostgresStandby {
            return Ok(());
        }
        let deadline = BootClock.now() + CATCH_UP;
        let primary = self.primary.load(Ordering::SeqCst);
        loop {
            let admin = &mut self.servers[primary].admin;
            let state = admin
                .sql("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'")
                .await;
            if state.is_ok_and(|state| state == ["sync"]) {
                return Ok(());
            }
            if BootClock.now() > deadline {
                bail!("the standby did not catch up within {CATCH_UP:?}");
            }
            rest().await;
        }
    }

    /// Waits until all nodes of a cluster have said the same of it for a while: one that thaws does not know yet that the others
    /// went on without it.
    pub(crate) async fn is_whole(&mut self) -> anyhow::Result<()> {
        let deadline = BootClock.now() + CATCH_UP;
        let mut same = 0;
        while self.engine == Engine::Galera && same < 10 {
            same = if self.agree().await { same + 1 } else { 0 };
            if BootClock.now() > deadline {
                bail!("the cluster is not whole after {CATCH_UP:?}");
            }
            BootClock.sleep_until(BootClock.now() + Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Whether all nodes of a cluster say the same of it, and that it is whole; of another engine always.
    pub(crate) async fn agree(&mut self) -> bool {
        if self.engine != Engine::Galera {
            return true;
        }
        let mut said = Vec::new();
        for server in &mut self.servers {
            said.push(server.members().await.unwrap_or_default());
        }
        // Sorted by their names: the number of the cluster, its size, and whether the node takes statements.
        said[0].ends_with(",3,ON") && said.iter().all(|one| *one == said[0])
    }

    /// Which server a fault is of: of a primary and its standby the primary.
    fn struck_server(&self, plan: &Plan) -> usize {
        match self.engine {
            Engine::PostgresStandby => self.primary.load(Ordering::SeqCst),
            Engine::Galera if !plan.kind.is_of_a_pod() => plan.target,
            _ => 0,
        }
    }

    async fn set_read_only(&mut self, index: usize, is_so: bool) -> anyhow::Result<()> {
        let value = if is_so { "on" } else { "off" };
        let admin = &mut self.servers[index].admin;
        if self.engine.is_postgres() {
            admin
                .sql(&format!("ALTER SYSTEM SET default_transaction_read_only = {value}"))
                .await?;
            admin.sql("SELECT pg_reload_conf()").await.map(drop)
        } else {
            admin.sql(&format!("SET GLOBAL read_only = {value}")).await.map(drop)
        }
    }

    /// A server that could not bear it is started again, as an operator would.
    async fn make_room(&mut self, index: usize) -> anyhow::Result<()> {
        let server = &mut self.servers[index];
        server.free_disk()?;
        if !server.runs() {
            server.kill().await?;
            server.start().await?;
        }
        Ok(())
    }
}

/// Up to a sixth of a second: more than a statement's limit when it is there twice.
fn late(plan: &Plan) -> Duration {
    LATE + Duration::from_millis(150).mul_f64(plan.strength.abs())
}

async fn end_sessions(server: &mut Server) -> anyhow::Result<()> {
    if server.engine.is_postgres() {
        return server.admin.sql(SESSIONS).await.map(drop);
    }
    let ids = "SELECT CAST(id AS CHAR) FROM information_schema.processlist WHERE user = 'service'";
    for id in server.admin.sql(ids).await? {
        // It may have ended by itself.
        let _ = server.admin.sql(&format!("KILL {id}")).await;
    }
    Ok(())
}

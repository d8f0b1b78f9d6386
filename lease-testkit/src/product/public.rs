//! [`Public`]: the futures of `lease-core`, each brought to the point where it is dropped.

use std::time::Duration;

use lease_core::{Held, LeaseRow, Operation, Outcome, Wait};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::case::{Case, GRACE, Pod, TTL, text};
use super::point::{End, drop_at};
use super::probe::WhenTold;
use super::{Backend, ensure};

/// A public future of `lease-core`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Public {
    /// `Job::run`.
    JobRun,
    /// `Lease::run`.
    LeaseRun,
    /// `Job::with_lease`.
    JobWithLease,
    /// `Lease::with_lease`.
    LeaseWithLease,
    /// `Job::try_acquire`.
    JobTryAcquire,
    /// `Lease::try_acquire`.
    LeaseTryAcquire,
    /// `Job::acquire` with a time to wait, on a free lease.
    JobAcquire,
    /// `Lease::acquire` without one, on a free lease.
    LeaseAcquireForever,
    /// `Job::acquire` with a time to wait, on a lease that another pod gives up meanwhile.
    JobAcquireTaken,
    /// `Job::acquire` without one, on a lease that another pod gives up meanwhile.
    JobAcquireTakenForever,
    /// `Guard::run`.
    GuardRun,
    /// `Guard::release`.
    GuardRelease,
    /// `Lease::shutdown` while a job runs that ends when it is told.
    ShutDown,
    /// `Lease::shutdown` while a job runs that does not.
    ShutDownStubborn,
    /// `Held::cancelled`.
    HeldCancelled,
    /// `Held::until_lost`.
    HeldUntilLost,
    /// `Periodic::next`.
    PeriodicNext,
    /// `Periodic::run`, until its first run ends the whole.
    PeriodicRun,
    /// `Campaign::next`.
    CampaignNext,
    /// `Campaign::run`, until its first leader ends the whole.
    CampaignRun,
}

impl Public {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::JobRun,
        Self::LeaseRun,
        Self::JobWithLease,
        Self::LeaseWithLease,
        Self::JobTryAcquire,
        Self::LeaseTryAcquire,
        Self::JobAcquire,
        Self::LeaseAcquireForever,
        Self::JobAcquireTaken,
        Self::JobAcquireTakenForever,
        Self::GuardRun,
        Self::GuardRelease,
        Self::ShutDown,
        Self::ShutDownStubborn,
        Self::HeldCancelled,
        Self::HeldUntilLost,
        Self::PeriodicNext,
        Self::PeriodicRun,
        Self::CampaignNext,
        Self::CampaignRun,
    ];

    /// The operations whose answers it can meet.
    pub(super) const fn operations(self) -> &'static [Operation] {
        use Operation::{Acquire, Release, Renew};
        match self {
            Self::JobRun | Self::LeaseRun | Self::JobWithLease | Self::LeaseWithLease => &[Acquire, Renew, Release],
            Self::JobTryAcquire | Self::LeaseTryAcquire => &[Acquire, Release],
            Self::JobAcquire | Self::LeaseAcquireForever => &[Acquire, Release],
            Self::JobAcquireTaken | Self::JobAcquireTakenForever => &[Acquire, Release],
            // A run that is lost is followed by another: what renewals do to one is seen with `Guard::run`.
            Self::PeriodicNext | Self::PeriodicRun | Self::CampaignNext | Self::CampaignRun => &[Acquire, Release],
            Self::GuardRun | Self::ShutDownStubborn => &[Renew, Release],
            Self::HeldCancelled | Self::HeldUntilLost => &[Renew, Release],
            Self::GuardRelease | Self::ShutDown => &[Release],
        }
    }

    /// Whether it waits for a lease, and goes on after an error.
    pub(super) const fn waits(self) -> bool {
        matches!(
            self,
            Self::JobAcquire
                | Self::LeaseAcquireForever
                | Self::JobAcquireTaken
                | Self::JobAcquireTakenForever
                | Self::PeriodicNext
                | Self::PeriodicRun
                | Self::CampaignNext
                | Self::CampaignRun
        )
    }

    pub(super) const fn is_taken(self) -> bool {
        matches!(self, Self::JobAcquireTaken | Self::JobAcquireTakenForever)
    }
}

/// What became of the future.
pub(super) struct Reached {
    /// Whether it ended by itself.
    pub(super) ended: bool,
    /// Whether its lease was used, so that the minimum counts.
    pub(super) used: bool,
    /// Whether the `Lease` was shut down.
    pub(super) is_closed: bool,
}

impl Reached {
    const fn new<T>(end: &End<T>, used: bool) -> Self {
        Self {
            ended: matches!(end, End::Ended(_)),
            used,
            is_closed: false,
        }
    }
}

impl Case {
    /// Makes the future, lets the store answer as it is to, and drops the future at its point.
    pub(super) async fn reach<B: Backend>(&self, pod: &Pod<'_, B>) -> Result<Reached, String> {
        let (lease, job, probe) = (&pod.lease, &pod.job, &pod.probe);
        let (name, options) = (self.name.as_str(), pod.options.clone());
        let f = || probe.job(&pod.time, self.lasts(), WhenTold::GoesOn);
        let quiet = || pod.seen.is_quiet();
        /// Drops a future at its point.
        macro_rules! dropped {
            ($future:expr) => {
                drop_at(self.point, &pod.time, quiet, $future).await?
            };
        }
        /// The same for one that gives a guard.
        macro_rules! gives_a_guard {
            ($future:expr, $has:pat) => {{
                pod.meet(self);
                let end = dropped!($future);
                let used = matches!(end, End::Ended($has));
                let is_right = used || !matches!(end, End::Ended(_)) || self.met.is_some();
                ensure!(is_right, "it was not granted");
                Ok(Reached::new(&end, used))
            }};
        }
        match self.public {
            Public::JobRun | Public::LeaseRun => {
                let f = f();
                pod.meet(self);
                let end = match self.public {
                    Public::JobRun => dropped!(job.run(f)),
                    _ => dropped!(async { lease.run(name, options, f).await.expect("name and options are valid") }),
                };
                let is_right = match &end {
                    End::Ended(Outcome::Ran(_)) | End::Dropped => true,
                    End::Ended(_) => self.met.is_some(),
                };
                ensure!(is_right, "it did not run");
                Ok(Reached::new(&end, probe.has_started()))
            }
            Public::JobWithLease | Public::LeaseWithLease => {
                let f = f();
                let f = async |held: Held| {
                    f(held).await;
                    Ok::<_, ()>(())
                };
                pod.meet(self);
                let end = match self.public {
                    Public::JobWithLease => dropped!(job.with_lease(f)),
                    _ => dropped!(lease.with_lease(name, TTL, f)),
                };
                let is_right = matches!(&end, End::Dropped | End::Ended(Ok(Some(())))) || self.met.is_some();
                ensure!(is_right, "it did not run");
                Ok(Reached::new(&end, probe.has_started()))
            }
            Public::JobTryAcquire => gives_a_guard!(job.try_acquire(), Ok(Some(_))),
            Public::LeaseTryAcquire => gives_a_guard!(lease.try_acquire(name, options), Ok(Some(_))),
            Public::JobAcquire => gives_a_guard!(job.acquire(Wait::For(Duration::from_secs(2))), Ok(_)),
            Public::LeaseAcquireForever => gives_a_guard!(lease.acquire(name, options, Wait::Forever), Ok(_)),
            Public::JobAcquireTaken => gives_a_guard!(job.acquire(Wait::For(Duration::from_secs(15))), Ok(_)),
            Public::JobAcquireTakenForever => gives_a_guard!(job.acquire(Wait::Forever), Ok(_)),
            Public::PeriodicNext => {
                let mut periodic = job.clone().periodic(TTL).map_err(text)?;
                gives_a_guard!(periodic.next(&CancellationToken::new()), Some(_))
            }
            Public::CampaignNext => {
                let mut campaign = job.clone().campaign();
                gives_a_guard!(campaign.next(&CancellationToken::new()), Some(_))
            }
            Public::PeriodicRun | Public::CampaignRun => {
                let shutdown = CancellationToken::new();
                let f = async |held: Held| {
                    probe.job(&pod.time, self.lasts(), WhenTold::GoesOn)(held).await;
                    shutdown.cancel();
                    Ok::<_, std::fmt::Error>(())
                };
                pod.meet(self);
                let end = match self.public {
                    Public::PeriodicRun => {
                        let periodic = job.clone().periodic(TTL).map_err(text)?;
                        dropped!(periodic.run(shutdown.clone(), f))
                    }
                    _ => dropped!(job.clone().campaign().run(shutdown.clone(), f)),
                };
                ensure!(matches!(end, End::Dropped) || probe.has_started(), "it did not run");
                Ok(Reached::new(&end, probe.has_started()))
            }
            Public::GuardRun => {
                let (guard, f) = (pod.guard().await?, f());
                pod.meet(self);
                Ok(Reached::new(&dropped!(guard.run(f)), true))
            }
            Public::GuardRelease => {
                let guard = pod.guard().await?;
                pod.meet(self);
                Ok(Reached::new(&dropped!(guard.release()), true))
            }
            Public::ShutDown | Public::ShutDownStubborn => {
                let when_told = match self.public {
                    Public::ShutDown => WhenTold::Ends,
                    _ => WhenTold::GoesOn,
                };
                let (job, f) = (job.clone(), probe.job(&pod.time, self.lasts(), when_told));
                let running = tokio::spawn(async move { drop(job.run(f).await) });
                pod.until("the job runs", TTL, || probe.polls() >= 2).await?;
                pod.meet(self);
                let end = dropped!(lease.shutdown(GRACE));
                if let End::Ended(names) = &end {
                    ensure!(names.is_empty() && probe.is_gone(), "the shutdown left {names:?}");
                }
                let mut reached = Reached::new(&end, true);
                reached.is_closed = self.point.polls > 0;
                self.job_ends(pod, &running, reached.is_closed).await?;
                Ok(reached)
            }
            Public::HeldCancelled | Public::HeldUntilLost => {
                let guard = pod.guard().await?;
                let held = guard.held().clone();
                // Either the lease runs out by itself, or the guard is dropped.
                let runs_out = matches!(self.met, Some((Operation::Renew, answer)) if answer.is_failure());
                let (time, after) = (pod.time.clone(), self.lasts());
                let released = tokio::spawn(async move {
                    if runs_out {
                        let _ = guard.held().cancelled().await;
                        let _ = guard.held().until_lost(std::future::pending::<()>()).await;
                    } else {
                        time.sleep(after).await;
                    }
                    drop(guard);
                });
                super::time::settle().await;
                pod.meet(self);
                let lasts = TTL * 10;
                let end = match self.public {
                    Public::HeldCancelled => Reached::new(&dropped!(held.cancelled()), true),
                    _ => Reached::new(&dropped!(held.until_lost(probe.future(&pod.time, lasts))), true),
                };
                let row = pod.row().await?;
                let is_early = held.is_live() && !released.is_finished() && held.stop().is_none();
                ensure!(!is_early || is_held(row.as_ref()), "its drop released the lease");
                drop(held);
                pod.until("the guard is dropped", TTL * 2, || released.is_finished())
                    .await?;
                Ok(end)
            }
        }
    }

    /// Waits for the job that a shutdown, if there is one, ends.
    async fn job_ends<B: Backend>(
        &self,
        pod: &Pod<'_, B>,
        running: &JoinHandle<()>,
        is_told: bool,
    ) -> Result<(), String> {
        let until = pod.now() + GRACE + pod.slack();
        while !pod.probe.is_gone() {
            ensure!(!is_told || pod.now() < until, "the job runs after the shutdown's grace");
            pod.step().await;
        }
        pod.until("the job's future ends", TTL, || running.is_finished()).await
    }
}

fn is_held(row: Option<&LeaseRow>) -> bool {
    row.is_some_and(|row| row.released_at.is_none())
}

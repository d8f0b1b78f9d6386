//! [`Lease`]: the front door.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::core::Core;
use crate::dyn_repo::{Boxed, DynRepo};
use crate::keeper::Command;
use crate::observe::Audience;
use crate::{
    AcquireError, BootClock, Clock, Guard, Held, Invalid, Job, Label, LeaseName, Observer, Options, Outcome, Repo,
    Timing, Wait,
};

/// Leases of one store, for one label. A clone is the same one.
///
/// Its keeper, the thread that renews, starts at the first operation and ends with the last clone and guard.
#[derive(Clone)]
pub struct Lease {
    core: Arc<Core>,
}

impl Lease {
    /// Leases of `repo`, under the label `{hostname}-{pid}`.
    #[must_use]
    pub fn new(repo: impl Repo) -> Self {
        Self::builder(repo).build()
    }

    /// Leases of `repo`, under a label of your own. Pods with the same label still exclude each other.
    #[must_use]
    pub fn with_holder(repo: impl Repo, label: Label) -> Self {
        Self::builder(repo).label(label).build()
    }

    /// Leases of `repo` with settings of your own.
    pub fn builder(repo: impl Repo) -> LeaseBuilder {
        LeaseBuilder {
            repo: Arc::new(Boxed::new(repo)),
            label: None,
            clock: Arc::new(BootClock),
            audience: Audience::default(),
            keeper_on: None,
        }
    }

    /// The label: what people read in the column `holder`, before the slash. Not a [`Holder`](crate::Holder), of which each tenure has
    /// its own.
    #[must_use]
    pub fn holder(&self) -> &Label {
        &self.core.label
    }

    /// A name with options, checked once: for start-up, so that a mistake is found before the first tick.
    ///
    /// `options` is a ttl or more: `Duration::from_secs(90)`, or `Options::from(ttl).at_least_for(..)`.
    ///
    /// # Errors
    /// [`Invalid`] says what is wrong with the name or the options.
    pub fn job(&self, name: impl AsRef<str>, options: impl Into<Options>) -> Result<Job, Invalid> {
        let name = LeaseName::new(name)?;
        let timing = Timing::new(&options.into())?;
        Ok(Job::new(self.core.clone(), name, timing))
    }

    /// Runs f if and only if the lease could be taken: `Some` of its value if it ran to its end, its error if it failed,
    /// `None` otherwise. A thin form of [`Job::run`] for work that simply is done by another pod or at the next tick.
    ///
    /// Whenever f did not run for another cause than a busy lease, there is a warning event.
    ///
    /// # Errors
    /// f's own.
    ///
    /// # Panics
    /// When the name or the ttl can't be used, so that a mistake is not a job that silently never runs. And when f panics,
    /// after the lease was released.
    ///
    /// # Cancelling
    /// Dropping this future drops f, then releases in the background.
    pub async fn with_lease<F, Fut, T, E>(&self, name: impl AsRef<str>, ttl: Duration, f: F) -> Result<Option<T>, E>
    where
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let job = self
            .job(name, ttl)
            .unwrap_or_else(|invalid| panic!("with_lease: {invalid}"));
        job.with_lease(f).await
    }

    /// [`Job::run`] without making the job first.
    ///
    /// # Errors
    /// [`Invalid`] says what is wrong with the name or the options.
    ///
    /// # Panics
    /// When f panics, after the lease was released.
    pub async fn run<F, Fut, T>(
        &self,
        name: impl AsRef<str>,
        options: impl Into<Options>,
        f: F,
    ) -> Result<Outcome<T>, Invalid>
    where
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = T>,
    {
        Ok(self.job(name, options)?.run(f).await)
    }

    /// [`Job::try_acquire`] without making the job first.
    ///
    /// # Errors
    /// As [`Job::try_acquire`], and [`AcquireError::Invalid`].
    pub async fn try_acquire(
        &self,
        name: impl AsRef<str>,
        options: impl Into<Options>,
    ) -> Result<Option<Guard>, AcquireError> {
        self.job(name, options)?.try_acquire().await
    }

    /// [`Job::acquire`] without making the job first.
    ///
    /// # Errors
    /// As [`Job::acquire`], and [`AcquireError::Invalid`].
    pub async fn acquire(
        &self,
        name: impl AsRef<str>,
        options: impl Into<Options>,
        wait: Wait,
    ) -> Result<Guard, AcquireError> {
        self.job(name, options)?.acquire(wait).await
    }

    /// Starts nothing any more, tells every f to stop, renews until each has ended, and releases.
    ///
    /// After `grace` what still runs is dropped. Where that is not possible, because f is inside a poll or was told
    /// to go on with [`OnLost::SignalOnly`](crate::OnLost::SignalOnly), renewal stops half a second later, nothing is
    /// released, and the name is in the answer: that row is freed at its expiry. Then it waits for the answers of the
    /// releases, at most a little over five seconds.
    ///
    /// # Cancelling
    /// Dropping this future changes nothing: the shutdown goes on.
    pub async fn shutdown(&self, grace: Duration) -> Vec<LeaseName> {
        self.core.closing.cancel();
        let Some(keeper) = self.core.running_keeper() else {
            return Vec::new();
        };
        let (reply, forsaken) = oneshot::channel();
        keeper.send(Command::ShutDown { grace, reply });
        forsaken.await.unwrap_or_default()
    }

    /// How many events were dropped because the observer or the subscriber was too slow for them.
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.core.events().dropped()
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("label", &self.core.label)
            .finish_non_exhaustive()
    }
}

/// Settings of a [`Lease`].
#[must_use]
pub struct LeaseBuilder {
    repo: Arc<dyn DynRepo>,
    label: Option<Label>,
    clock: Arc<dyn Clock>,
    audience: Audience,
    keeper_on: Option<Handle>,
}

impl LeaseBuilder {
    /// Who we are. By default `{hostname}-{pid}`.
    pub fn label(mut self, label: Label) -> Self {
        self.label = Some(label);
        self
    }

    /// Where the time comes from. By default the machine's monotonic clock that counts suspend.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Who gets the [`Event`](crate::Event)s, beside `tracing`.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.audience.observer = Some(Arc::new(observer));
        self
    }

    /// Gives these leases metrics of their own, by a label `lease` with their name. All other leases are counted together,
    /// without that label: names may be as many as customers are, and each series costs memory where metrics are kept.
    ///
    /// The recorder is the one that is current at the first operation: install it before.
    #[cfg(feature = "metrics")]
    pub fn metrics_per_lease(mut self, names: impl IntoIterator<Item = LeaseName>) -> Self {
        self.audience.per_lease = names.into_iter().collect();
        self
    }

    /// Runs the keeper as a task of this runtime instead of a thread of its own: for tests under paused time.
    ///
    /// Work that blocks that runtime then delays renewals, and its end ends them.
    pub fn keeper_on(mut self, runtime: Handle) -> Self {
        self.keeper_on = Some(runtime);
        self
    }

    /// The leases.
    #[must_use]
    pub fn build(self) -> Lease {
        let label = self.label.unwrap_or_else(Label::of_this_process);
        let core = Core::new(self.repo, label, self.clock, self.audience, self.keeper_on);
        Lease { core: Arc::new(core) }
    }
}

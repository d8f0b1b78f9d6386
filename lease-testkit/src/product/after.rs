//! What must be so after a future was dropped, or has ended.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lease_core::{Label, Lease, LeaseRow, Operation, Outcome, Ran, Release, Skip, microseconds};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::case::{Case, MINIMUM, Pod, TTL, text};
use super::{Backend, Public, Rest, ensure};

/// How long the store goes on to answer as it did: longer than the keeper waits for an acquire.
const LINGER: Duration = Duration::from_millis(3_600);
/// How often it is looked at the row.
const LEAST: Duration = Duration::from_millis(100);
/// How often an undo, or a release that had no answer, is repeated.
const UNDO_EVERY: Duration = Duration::from_secs(1);

impl Case {
    /// Looks at what is left, first while the store still answers as it did, then when it answers well.
    pub(super) async fn after<B: Backend>(
        &self,
        pod: &Pod<'_, B>,
        used: Option<String>,
        is_closed: bool,
        background: Vec<JoinHandle<()>>,
    ) -> Result<(), String> {
        if self.point.rest == Rest::Again && !is_closed {
            asks_again(pod)?;
        }
        for task in &background {
            pod.until("the rest ends", TTL, || task.is_finished()).await?;
        }
        if self.met.is_some() {
            pod.time.pass(LINGER, || pod.seen.is_quiet()).await;
        }
        pod.faults.heal();
        pod.faults.run_late().await;
        let row = self.released(pod).await?;
        if let Some(row) = &row {
            self.keeps_its_minimum(pod, row, used.as_deref())?;
            if let Some(left) = row.expires_in() {
                pod.backend.step_clock(microseconds(left)).await;
            }
        } else {
            ensure!(used.is_none(), "its row is gone");
        }
        self.next_tick_runs(pod, is_closed).await?;
        // A release that has done its work may still wait for its answer.
        pod.time.pass(self.release_takes(), || pod.seen.is_quiet()).await;
        let start = pod.now();
        let names = tokio::time::timeout(TTL, pod.lease.shutdown(Duration::ZERO)).await;
        let took = pod.now().since(start);
        ensure!(
            names == Ok(Vec::new()),
            "the keeper still has something to do: {names:?}"
        );
        let longest = if pod.time.is_paused() {
            Duration::ZERO
        } else {
            pod.slack()
        };
        ensure!(took <= longest, "the keeper still had something to do for {took:?}");
        let row = pod.row().await?;
        ensure!(is_released(row.as_ref()), "at last somebody holds it: {row:?}");
        Ok(())
    }

    /// The longest that a release is under way.
    fn release_takes(&self) -> Duration {
        match self.met {
            Some((Operation::Release, answer)) => answer.takes(Operation::Release),
            _ => Duration::ZERO,
        }
    }

    /// Waits for the release, as long as one may take.
    async fn released<B: Backend>(&self, pod: &Pod<'_, B>) -> Result<Option<LeaseRow>, String> {
        let bound = self.release_takes() + UNDO_EVERY + pod.slack();
        let start = pod.now();
        // Lets those who are on their way, such as one who asked again, get there first.
        pod.time.pass(LEAST, || pod.seen.is_quiet()).await;
        loop {
            let row = pod.row().await?;
            let granted = pod.seen.granted();
            if is_released(row.as_ref()) || (row.is_none() && granted.is_empty()) {
                return Ok(row);
            }
            let waited = pod.now().since(start);
            ensure!(waited < bound, "not released after {waited:?}: {row:?}, of {granted:?}");
            pod.time.step(Duration::from_millis(100), || pod.seen.is_quiet()).await;
        }
    }

    fn keeps_its_minimum<B: Backend>(
        &self,
        pod: &Pod<'_, B>,
        row: &LeaseRow,
        used: Option<&str>,
    ) -> Result<(), String> {
        let micros = |time: lease_core::DbTime| time.as_micros();
        let released_at = row.released_at.map_or(0, micros);
        let minimum = match self.public {
            // It takes no options.
            Public::LeaseWithLease => Duration::ZERO,
            _ if used == Some(row.holder.as_str()) => MINIMUM,
            _ => Duration::ZERO,
        };
        // Who asks again may be granted it, once the minimum of the one before is over.
        ensure!(
            used.is_none_or(|holder| holder == row.holder) || self.point.rest == Rest::Again,
            "another one has its row: {row:?}, used: {used:?}"
        );
        let until = released_at.max(micros(row.acquired_at) + microseconds(minimum));
        // A server may read its clock twice in one statement.
        let most = if pod.time.is_paused() { 0 } else { 1_000_000 };
        ensure!(
            micros(row.expires_at).abs_diff(until) <= most,
            "with a minimum of {minimum:?} it should be free from {until} on, used: {used:?}: {row:?}"
        );
        Ok(())
    }

    /// The name can be had again, by this `Lease` unless it was shut down.
    async fn next_tick_runs<B: Backend>(&self, pod: &Pod<'_, B>, is_closed: bool) -> Result<(), String> {
        let fresh = is_closed.then(|| {
            let label = Label::new("fresh").expect("a valid label");
            let builder = Lease::builder(pod.faults.clone()).label(label);
            builder.clock(pod.time.clone()).keeper_on(Handle::current()).build()
        });
        if is_closed {
            let tick = pod.job.run(async |_| ()).await;
            ensure!(
                matches!(tick, Outcome::Skipped(Skip::ShuttingDown)),
                "a shutdown was forgotten: {tick:?}"
            );
        }
        let lease = fresh.as_ref().unwrap_or(&pod.lease);
        let tick = lease.run(pod.name.as_str(), pod.tick_options(), async |_| ()).await;
        match tick.map_err(text)? {
            Outcome::Ran(Ran {
                release: Ok(Release::Released),
                ..
            }) => Ok(()),
            other => Err(format!("the next tick did not run: {other:?}")),
        }
    }
}

/// A drop gives the name free at once: one poll shows it, since only a busy name is answered without the keeper.
fn asks_again<B: Backend>(pod: &Pod<'_, B>) -> Result<(), String> {
    let again = pin!(pod.job.try_acquire());
    let answer = again.poll(&mut Context::from_waker(Waker::noop()));
    ensure!(matches!(answer, Poll::Pending), "the name stays taken here: {answer:?}");
    Ok(())
}

fn is_released(row: Option<&LeaseRow>) -> bool {
    row.is_some_and(|row| row.released_at.is_some())
}

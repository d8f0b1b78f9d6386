//! Many pods tick on one lease.

use std::time::{Duration, Instant};

use super::{all, pod, span, sum};
use crate::{Contender, Gate, Outcome, Place, Times, Window};

const NAME: &str = "ticked";

/// What came of a pod's ticks.
struct Ticks<C> {
    pod: C,
    won: Times,
    lost: Times,
    errors: u32,
}

pub(crate) async fn ticks<C: Contender>(
    place: &Place,
    pods: usize,
    seconds: f64,
    every: Duration,
    work: Duration,
    gate: &mut Gate,
) -> anyhow::Result<Outcome> {
    let mut opened = Vec::with_capacity(pods);
    for _ in 0..pods {
        let mut pod: C = pod(place).await?;
        if let Some(guard) = pod.try_acquire(NAME).await? {
            pod.release(guard).await?;
        }
        opened.push(pod);
    }
    gate.begin()?;
    let window = Window::begin()?;
    let began = Instant::now();
    let ended = all(opened.into_iter().enumerate().map(|(number, pod)| async move {
        let mut ticks = Ticks {
            pod,
            won: Times::new(),
            lost: Times::new(),
            errors: 0,
        };
        let mut due = began + every.mul_f64(number as f64 / pods as f64);
        while due < began + span(seconds) {
            tokio::time::sleep_until(due.into()).await;
            let now = Instant::now();
            match ticks.pod.try_acquire(NAME).await {
                Ok(Some(guard)) => {
                    ticks.won.add(now.elapsed());
                    tokio::time::sleep(work).await;
                    ticks.errors += u32::from(ticks.pod.release(guard).await.is_err());
                }
                Ok(None) => ticks.lost.add(now.elapsed()),
                Err(_) => ticks.errors += 1,
            }
            // Who is late leaves out what it has missed, as a ticker does.
            due += every;
            while due < Instant::now() {
                due += every;
            }
        }
        Ok(ticks)
    }))
    .await?;
    let lost = sum(ended.iter().map(|ticks| &ticks.lost))?;
    let mut outcome = window.end(&sum(ended.iter().map(|ticks| &ticks.won))?)?;
    gate.end()?;
    let errors: u32 = ended.iter().map(|ticks| ticks.errors).sum();
    outcome.more.insert("lost", lost.len() as f64);
    outcome.more.insert("lost_p50_us", lost.us(0.5));
    outcome.more.insert("lost_p99_us", lost.us(0.99));
    outcome.more.insert("errors", f64::from(errors));
    Ok(outcome)
}

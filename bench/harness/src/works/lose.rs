//! Trying to take what another holds.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::{all, pod, span, sum};
use crate::{Contender, Gate, Outcome, Place, Times, Window};

const NAME: &str = "held";

pub(crate) async fn lose<C: Contender>(
    place: &Place,
    pods: usize,
    seconds: f64,
    every: Option<Duration>,
    held_elsewhere: bool,
    gate: &mut Gate,
) -> anyhow::Result<Outcome> {
    let mut losers = Vec::with_capacity(pods);
    for number in 0..pods {
        let mut loser: C = pod(place).await?;
        // Its connection is open, and has its statements, before the clock runs.
        let warm = format!("warm-{number}");
        let guard = loser.try_acquire(&warm).await?.context("nobody else has it")?;
        loser.release(guard).await?;
        losers.push(loser);
    }
    let mut holder: C = pod(place).await?;
    let guard = if held_elsewhere {
        None
    } else {
        Some(holder.try_acquire(NAME).await?.context("nobody else has it")?)
    };
    gate.begin()?;
    let window = Window::begin()?;
    let began = Instant::now();
    let ended = all(losers.into_iter().enumerate().map(|(number, mut loser)| async move {
        let (mut times, mut errors) = (Times::new(), 0_u64);
        // Spread over the interval, as pods are that were started at different times.
        let mut due = began + every.unwrap_or_default().mul_f64(number as f64 / pods as f64);
        let end = began + span(seconds);
        loop {
            if every.is_some() {
                tokio::time::sleep_until(due.into()).await;
            }
            let now = Instant::now();
            if now >= end {
                return Ok((loser, times, errors));
            }
            match loser.try_acquire(NAME).await {
                Ok(None) => {}
                Ok(Some(_)) => bail!("it was granted what another holds"),
                // Only some contenders have a limit, and who has none waits for as long.
                Err(error) => {
                    if errors == 0 {
                        eprintln!("pod {number} had no answer: {error:#}");
                    }
                    errors += 1;
                }
            }
            times.add(now.elapsed());
            due += every.unwrap_or_default();
        }
    }))
    .await?;
    let mut outcome = window.end(&sum(ended.iter().map(|(_, times, _)| times))?)?;
    // They took their time, but are no lost ticks.
    let errors: u64 = ended.iter().map(|(_, _, errors)| errors).sum();
    outcome.operations -= errors;
    outcome.more.insert("errors", errors as f64);
    gate.end()?;
    if let Some(guard) = guard {
        ensure!(!C::is_lost(&guard), "it was lost meanwhile");
        holder.release(guard).await?;
    }
    Ok(outcome)
}

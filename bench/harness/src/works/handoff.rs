//! From one pod to the next that waits.

use std::time::{Duration, Instant};

use anyhow::ensure;

use super::pod;
use crate::{Contender, Gate, Outcome, Place, Times, Window};

const NAME: &str = "handed-over";
/// The first ones open connections.
const WARM_UP: u32 = 2;

pub(crate) async fn handoff<C: Contender>(place: &Place, rounds: u32, gate: &mut Gate) -> anyhow::Result<Outcome> {
    let (mut holder, mut other): (C, C) = (pod(place).await?, pod(place).await?);
    let mut guard = holder.acquire(NAME).await?;
    let mut times = Times::new();
    gate.begin()?;
    let window = Window::begin()?;
    for round in 0..rounds + WARM_UP {
        let waiting = tokio::spawn(async move {
            let guard = other.acquire(NAME).await?;
            anyhow::Ok((Instant::now(), other, guard))
        });
        // Steps of the golden ratio spread over it evenly, whatever the pace of who polls.
        let share = (f64::from(round) * 0.618_034).fract();
        tokio::time::sleep(Duration::from_millis(30) + Duration::from_millis(300).mul_f64(share)).await;
        ensure!(!waiting.is_finished(), "it can't be had while another holds it");
        let released_at = Instant::now();
        holder.release(guard).await?;
        let granted_at;
        let released = holder;
        (granted_at, holder, guard) = waiting.await??;
        other = released;
        if round >= WARM_UP {
            times.add(granted_at.saturating_duration_since(released_at));
        }
    }
    let outcome = window.end(&times)?;
    gate.end()?;
    holder.release(guard).await?;
    Ok(outcome)
}

//! Renewals one by one.

use std::time::Instant;

use anyhow::Context;

use super::{all, span, sum};
use crate::{Contender, Gate, Outcome, Place, Times, Window};

pub(crate) async fn renew<C: Contender>(
    place: &Place,
    clients: usize,
    seconds: f64,
    name: Option<&str>,
    gate: &mut Gate,
) -> anyhow::Result<Outcome> {
    let opened = C::open(place, clients).await?;
    let named = opened.into_iter().enumerate().map(|(number, client)| {
        let name = name.map_or_else(|| format!("renewed-{number}"), str::to_owned);
        (name, client)
    });
    let held = all(named.map(|(name, mut client)| async move {
        let mut guard = client.try_acquire(&name).await?.context("nobody else has it")?;
        client.renew(&mut guard).await?;
        Ok((client, guard))
    }))
    .await?;
    gate.begin()?;
    let window = Window::begin()?;
    let end = Instant::now() + span(seconds);
    let ended = all(held.into_iter().map(|(mut client, mut guard)| async move {
        let mut times = Times::new();
        let mut now = Instant::now();
        while now < end {
            client.renew(&mut guard).await?;
            let next = Instant::now();
            times.add(next - now);
            now = next;
        }
        Ok((client, guard, times))
    }))
    .await?;
    let outcome = window.end(&sum(ended.iter().map(|(_, _, times)| times))?)?;
    gate.end()?;
    for (mut client, guard, _) in ended {
        client.release(guard).await?;
    }
    Ok(outcome)
}

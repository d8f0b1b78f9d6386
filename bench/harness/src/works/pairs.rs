//! Acquire and release, nobody else wanting it.

use std::time::Instant;

use anyhow::{Context, ensure};

use super::{all, span, sum};
use crate::{Contender, Gate, Outcome, Place, Times, Window};

pub(crate) async fn pairs<C: Contender>(
    place: &Place,
    clients: usize,
    seconds: f64,
    gate: &mut Gate,
) -> anyhow::Result<Outcome> {
    let mut opened = C::open(place, clients).await?;
    ensure!(opened.len() == clients, "a client for each");
    // Every connection is open, and has its statements and its row, before the clock runs.
    for _ in 0..2 {
        opened = all(opened.into_iter().enumerate().map(|(number, mut client)| async move {
            pair(&mut client, &name(number)).await?;
            Ok(client)
        }))
        .await?;
    }
    gate.begin()?;
    let window = Window::begin()?;
    let end = Instant::now() + span(seconds);
    let ended = all(opened.into_iter().enumerate().map(|(number, mut client)| async move {
        let name = name(number);
        let mut times = Times::new();
        let mut now = Instant::now();
        while now < end {
            pair(&mut client, &name).await?;
            let next = Instant::now();
            times.add(next - now);
            now = next;
        }
        Ok((client, times))
    }))
    .await?;
    let outcome = window.end(&sum(ended.iter().map(|(_, times)| times))?)?;
    gate.end()?;
    Ok(outcome)
}

async fn pair<C: Contender>(client: &mut C, name: &str) -> anyhow::Result<()> {
    let guard = client.try_acquire(name).await?.context("nobody else has it")?;
    client.release(guard).await
}

fn name(client: usize) -> String {
    format!("pair-{client}")
}

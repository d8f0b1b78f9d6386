//! Many leases held by one pod.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::{all, span};
use crate::{Contender, Gate, Outcome, Place, Times, Window};

/// As many as a repo of ours opens if not told otherwise.
const CLIENTS: usize = 4;

pub(crate) async fn held<C: Contender>(
    place: &Place,
    count: usize,
    seconds: f64,
    gate: &mut Gate,
) -> anyhow::Result<Outcome> {
    ensure!(C::RENEWS, "nothing renews what is held");
    let clients = C::open(place, CLIENTS).await?;
    // Every connection is open before memory is looked at.
    let clients = all(clients.into_iter().enumerate().map(|(number, mut client)| async move {
        let name = format!("first-{number}");
        let guard = client.try_acquire(&name).await?.context("nobody else has it")?;
        client.release(guard).await?;
        Ok(client)
    }))
    .await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = resident()?;
    let guards = all(clients.into_iter().enumerate().map(|(number, mut client)| async move {
        let mut guards = Vec::with_capacity(count.div_ceil(CLIENTS));
        for lease in (number..count).step_by(CLIENTS) {
            let name = format!("held-{lease}");
            guards.push(client.try_acquire(&name).await?.context("nobody else has it")?);
        }
        Ok((client, guards))
    }))
    .await?;
    // What was acquired at different times comes together within two rounds.
    let round = place.ttl / 3;
    tokio::time::sleep(round * 2).await;
    between_renewals(round, || {
        let guards = guards.iter().flat_map(|(_, guards)| guards);
        guards.filter_map(C::lasts).max()
    })
    .await?;
    gate.begin()?;
    let window = Window::begin()?;
    tokio::time::sleep(span(seconds)).await;
    let mut outcome = window.end(&Times::new())?;
    let after = resident()?;
    gate.end()?;
    let lost = guards
        .iter()
        .flat_map(|(_, guards)| guards)
        .filter(|guard| C::is_lost(guard));
    let lost = lost.count();
    ensure!(lost == 0, "{lost} of {count} were lost");
    outcome.operations = count as u64;
    outcome
        .more
        .insert("bytes_each", after.saturating_sub(before) as f64 / count as f64);
    Ok(outcome)
}

/// Waits until the last renewal is half a round past, so that a window of whole rounds has as many renewals of each lease, and none
/// is under way at its edges.
async fn between_renewals(round: Duration, longest: impl Fn() -> Option<Duration>) -> anyhow::Result<()> {
    let began = Instant::now();
    let Some(first) = longest() else { return Ok(()) };
    let (mut renewed, mut ends) = (began, began + first);
    while renewed.elapsed() < round / 2 {
        ensure!(
            began.elapsed() < round * 4,
            "what is due together is not renewed together"
        );
        tokio::time::sleep(round / 50).await;
        let now = Instant::now();
        let later = now + longest().unwrap_or_default();
        // What was not renewed ends when it did, but for the time between two looks at the clock.
        if later > ends + round / 50 {
            (renewed, ends) = (now, later);
        }
    }
    Ok(())
}

/// What this process has in memory, in bytes (proc_pid_statm(5)).
fn resident() -> anyhow::Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split(' ').nth(1).context("no resident pages")?.parse()?;
    Ok(pages * 4_096)
}

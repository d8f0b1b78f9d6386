//! Each work, for any contender.

mod handoff;
mod held;
mod lose;
mod pairs;
mod renew;
mod ticks;

use std::future::Future;
use std::time::Duration;

use anyhow::Context;
use tokio::task::JoinHandle;

use crate::{Contender, Place, Times};

pub(crate) use handoff::handoff;
pub(crate) use held::held;
pub(crate) use lose::lose;
pub(crate) use pairs::pairs;
pub(crate) use renew::renew;
pub(crate) use ticks::ticks;

/// A pod with one client.
async fn pod<C: Contender>(place: &Place) -> anyhow::Result<C> {
    C::open(place, 1).await?.pop().context("a pod has a client")
}

/// All at once; in the order in which they were started.
async fn all<T: Send + 'static, F>(futures: impl IntoIterator<Item = F>) -> anyhow::Result<Vec<T>>
where
    F: Future<Output = anyhow::Result<T>> + Send + 'static,
{
    let tasks: Vec<JoinHandle<anyhow::Result<T>>> = futures.into_iter().map(tokio::spawn).collect();
    let mut values = Vec::with_capacity(tasks.len());
    for task in tasks {
        values.push(task.await??);
    }
    Ok(values)
}

/// The times of all clients.
fn sum<'a>(each: impl IntoIterator<Item = &'a Times>) -> anyhow::Result<Times> {
    let mut sum = Times::new();
    for times in each {
        sum.merge(times)?;
    }
    Ok(sum)
}

fn span(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

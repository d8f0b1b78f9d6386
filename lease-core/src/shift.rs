//! One tenure of a job that is repeated: told of a shutdown, its failure told of.

use std::fmt::Display;

use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::observe::Event;
use crate::{Guard, Held, Outcome, Stop};

/// Runs f under the lease. When `shutdown` fires f is told, and has the time it takes: the lease is renewed until it ended.
pub(crate) async fn work<F, E>(core: &Core, guard: Guard, shutdown: &CancellationToken, f: &mut F)
where
    F: AsyncFnMut(Held) -> Result<(), E>,
    E: Display,
{
    let held = guard.held().clone();
    let outcome = {
        let mut running = std::pin::pin!(guard.run(async move |held| f(held).await));
        tokio::select! {
            biased;
            outcome = &mut running => outcome,
            () = shutdown.cancelled() => {
                tell(core, &held, Stop::ShutDown);
                running.await
            }
        }
    };
    if let Outcome::Ran(ran) = outcome
        && let Err(error) = ran.value
    {
        core.events().send(Event::Failed {
            name: held.name().clone(),
            token: held.token(),
            error: error.to_string(),
        });
    }
}

/// Fires `held`, unless it has fired. The tenure goes on: it is renewed until f has ended.
pub(crate) fn tell(core: &Core, held: &Held, stop: Stop) {
    if held.tell(stop.clone()) {
        core.events().send(Event::Stopped {
            name: held.name().clone(),
            token: held.token(),
            stop,
        });
    }
}

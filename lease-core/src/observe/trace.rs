//! An [`Event`] as `tracing` has it. Names and fields are stable: docs/operating.md lists them, and a test compares.

use std::time::Duration;

use super::Event;
use crate::{Skip, Stop};

impl Event {
    /// Writes the event to the current `tracing` subscriber: target `lease`, the name of the variant as message.
    pub(super) fn trace(&self) {
        match self {
            Self::Acquired { name, holder, token } => {
                tracing::info!(target: "lease", lease = name.as_str(), holder = holder.as_str(), token = token.get(), "acquired");
            }
            Self::Skipped {
                name,
                skip: skip @ (Skip::Busy(_) | Skip::BusyHere),
            } => {
                tracing::debug!(target: "lease", lease = name.as_str(), cause = skip.as_str(), detail = %skip, "skipped");
            }
            Self::Skipped {
                name,
                skip: Skip::Store(error),
            } => {
                let source = error.causes();
                tracing::warn!(target: "lease", lease = name.as_str(), cause = "store", kind = error.kind().as_str(), %error, source, "skipped");
            }
            Self::Skipped { name, skip } => {
                tracing::warn!(target: "lease", lease = name.as_str(), cause = skip.as_str(), "skipped");
            }
            Self::Renewed { name, token, took } => {
                tracing::debug!(target: "lease", lease = name.as_str(), token = token.get(), took_us = micros(*took), "renewed");
            }
            Self::RenewFailed {
                name,
                token,
                error,
                remaining,
            } => {
                let source = error.causes();
                tracing::warn!(target: "lease", lease = name.as_str(), token = token.get(), kind = error.kind().as_str(), %error, source, remaining_us = micros(*remaining), "renew failed");
            }
            Self::Stopped {
                name,
                token,
                stop: stop @ Stop::ShutDown,
            } => {
                tracing::info!(target: "lease", lease = name.as_str(), token = token.get(), cause = stop.as_str(), "stopped");
            }
            Self::Stopped { name, token, stop } => {
                tracing::warn!(target: "lease", lease = name.as_str(), token = token.get(), cause = stop.as_str(), detail = %stop, "stopped");
            }
            Self::Overrun { name, token } => {
                tracing::warn!(target: "lease", lease = name.as_str(), token = token.get(), "overrun");
            }
            Self::Ended {
                name,
                token,
                release: Ok(release),
                overrun,
            } => {
                tracing::info!(target: "lease", lease = name.as_str(), token = token.get(), ?release, overrun_us = micros(*overrun), "ended");
            }
            Self::Ended {
                name,
                token,
                release: Err(error),
                overrun,
            } => {
                let source = error.causes();
                tracing::warn!(target: "lease", lease = name.as_str(), token = token.get(), kind = error.kind().as_str(), %error, source, overrun_us = micros(*overrun), "ended");
            }
            Self::Failed { name, token, error } => {
                tracing::error!(target: "lease", lease = name.as_str(), token = token.get(), error, "failed");
            }
            Self::KeeperDied => tracing::error!(target: "lease", "keeper died"),
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

//! What became of a run: its exit code, what is said of it, and the report.

use std::time::Duration;

use lease_core::{LeaseName, Release, Skip, Stop};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::children::Status;
use crate::answer::{Failure, code};
use crate::rows::human;

/// How it ended.
pub(super) enum End {
    /// The command ran to its end.
    Ran(Status),
    /// Somebody else has the lease.
    NotAcquired(Skip),
    /// The lease was lost while it ran.
    Lost(Stop),
    /// It took longer than it may.
    TimeLimit(Duration),
    /// A signal came while the lease was waited for.
    Interrupted(Signal),
    /// It was not started, or could not be looked after.
    Failed(Failure),
}

/// A run that had the lease.
pub(super) struct Tenure {
    pub(super) holder: String,
    pub(super) token: i64,
    pub(super) ran_for: Duration,
    pub(super) status: Option<Status>,
    /// What became of the release; `None` if it is not known.
    pub(super) release: Option<Release>,
}

/// All there is to say of a run.
pub(super) struct Report<'a> {
    pub(super) name: &'a LeaseName,
    pub(super) end: End,
    pub(super) waited: Duration,
    pub(super) tenure: Option<Tenure>,
    /// The exit code for [`End::NotAcquired`].
    pub(super) busy_code: u8,
}

impl Report<'_> {
    pub(super) fn exit_code(&self) -> u8 {
        match &self.end {
            End::Ran(status) => status.exit_code(),
            End::NotAcquired(_) => self.busy_code,
            End::Lost(_) => code::LOST,
            End::TimeLimit(_) => code::TIME_LIMIT,
            End::Interrupted(signal) => Status::Signal(signal.as_raw()).exit_code(),
            End::Failed(failure) => failure.code,
        }
    }

    /// Why the command did not run to its end; `None` if it did.
    pub(super) fn cause(&self) -> Option<String> {
        let name = self.name;
        Some(match &self.end {
            End::Ran(_) => return None,
            End::NotAcquired(Skip::Busy(Some(incumbent))) => {
                let left = human(incumbent.expires_in);
                format!(
                    "{name} is held by {}, for another {left} unless it is renewed",
                    incumbent.holder
                )
            }
            End::NotAcquired(skip) => format!("{name} was not acquired: {skip}"),
            End::Lost(stop) => format!("{name} was lost, and its command ended: {stop}"),
            End::TimeLimit(limit) => format!("{name} had its {}, and its command was ended", human(*limit)),
            End::Interrupted(signal) => format!("the waiting for {name} was ended by signal {}", signal.as_raw()),
            End::Failed(failure) => failure.text.clone(),
        })
    }

    /// How a run that had the lease ended, for who asks for it.
    pub(super) fn ending(&self) -> Option<String> {
        let tenure = self.tenure.as_ref()?;
        let status = match tenure.status {
            Some(Status::Code(code)) => format!("the command ended with code {code}"),
            Some(Status::Signal(signal)) => format!("the command died of signal {signal}"),
            None => "it is not known how the command ended".to_owned(),
        };
        let released = if tenure.release == Some(Release::Released) {
            "released"
        } else {
            "not released"
        };
        Some(format!(
            "{status} after {}; {} is {released}",
            human(tenure.ran_for),
            self.name
        ))
    }

    pub(super) fn json(&self) -> Value {
        let outcome = match &self.end {
            End::Ran(_) => "ran",
            End::NotAcquired(_) => "not_acquired",
            End::Lost(_) => "lost",
            End::TimeLimit(_) => "time_limit",
            End::Interrupted(_) => "interrupted",
            End::Failed(_) => "failed",
        };
        let tenure = self.tenure.as_ref();
        json!({
            "name": self.name.as_str(),
            "outcome": outcome,
            "exit_code": self.exit_code(),
            "cause": self.cause(),
            "waited_ms": millis(self.waited),
            "holder": tenure.map(|tenure| &tenure.holder),
            "token": tenure.map(|tenure| tenure.token),
            "ran_ms": tenure.map(|tenure| millis(tenure.ran_for)),
            "command": tenure.and_then(|tenure| tenure.status).map(Status::json),
            "released": tenure.map(|tenure| tenure.release == Some(Release::Released)),
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

//! [`Call`]: one statement under way, with the keeper's own limit on it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::TenureId;
use crate::dyn_repo::Answer;
use crate::{Acquire, Claim, Clock, Moment, Operation, Release, Renew, RepoError, RepoErrorKind};

pub(super) type Call = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// A statement that ended.
pub(super) struct Answered {
    pub(super) id: TenureId,
    pub(super) sent_at: Moment,
    pub(super) reply: Reply,
}

pub(super) enum Reply {
    Acquire(Result<Acquire, RepoError>),
    Renew(Result<Renew, RepoError>),
    Release(Result<Release, RepoError>),
}

/// Which tenure sends what, and when it was decided.
pub(super) struct Sent {
    pub(super) id: TenureId,
    pub(super) at: Moment,
    pub(super) operation: Operation,
}

/// Runs a statement. A backend keeps `claim.limit` itself and knows best what went wrong; one that does not is cut off
/// a quarter later.
pub(super) fn call<T: 'static>(
    sent: Sent,
    claim: &Claim,
    clock: &Arc<dyn Clock>,
    answer: Answer<T>,
    reply: fn(Result<T, RepoError>) -> Reply,
) -> Call {
    let Sent { id, at, operation } = sent;
    let (clock, name, limit) = (clock.clone(), claim.name.clone(), cut_off(claim.limit));
    Box::pin(async move {
        let result = tokio::select! {
            biased;
            result = answer => result,
            () = clock.sleep_until(at + limit) => {
                let error = RepoError::new(RepoErrorKind::Timeout, operation).with_lease(&name);
                Err(error.with_source(format!("the backend did not keep its limit, and was cut off after {limit:?}")))
            }
        };
        Answered {
            id,
            sent_at: at,
            reply: reply(result),
        }
    })
}

fn cut_off(limit: Duration) -> Duration {
    limit * 5 / 4
}

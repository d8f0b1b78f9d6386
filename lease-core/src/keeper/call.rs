//! [`Call`]: one statement under way, with the keeper's own limit on it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::{Context, TenureId};
use crate::dyn_repo::Answer;
use crate::{Acquire, Claim, Clock, LeaseName, Moment, Operation, Release, Renew, RepoError, RepoErrorKind};

pub(super) type Call = Pin<Box<dyn Future<Output = Answers> + Send>>;

/// What a statement answered: for one tenure or, for a batch of renewals, for several.
pub(super) enum Answers {
    One(Answered),
    Batch(Vec<Answered>),
}

/// A statement that ended.
pub(super) struct Answered {
    pub(super) id: TenureId,
    pub(super) sent_at: Moment,
    pub(super) reply: Reply,
}

impl Answered {
    pub(super) const fn is_answer(&self) -> bool {
        !matches!(
            self.reply,
            Reply::Acquire(Err(_)) | Reply::Renew(Err(_)) | Reply::Release(Err(_))
        )
    }
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
            () = clock.sleep_until(at + limit) => Err(not_kept(operation, &name, limit)),
        };
        Answers::One(Answered {
            id,
            sent_at: at,
            reply: reply(result),
        })
    })
}

/// Renews several leases in one statement, all within the same limit.
pub(super) fn batch(ids: Vec<TenureId>, claims: Vec<Claim>, at: Moment, context: &Context) -> Call {
    let clock = context.clock.clone();
    let limit = cut_off(claims.first().map_or(Duration::ZERO, |claim| claim.limit));
    let names: Vec<_> = claims.iter().map(|claim| claim.name.clone()).collect();
    let answer = context.repo.renew_all(claims);
    Box::pin(async move {
        let results = tokio::select! {
            biased;
            results = answer => results,
            () = clock.sleep_until(at + limit) => {
                names.iter().map(|name| Err(not_kept(Operation::Renew, name, limit))).collect()
            }
        };
        let answered = ids.into_iter().zip(results).map(|(id, result)| Answered {
            id,
            sent_at: at,
            reply: Reply::Renew(result),
        });
        Answers::Batch(answered.collect())
    })
}

fn not_kept(operation: Operation, name: &LeaseName, limit: Duration) -> RepoError {
    let error = RepoError::new(RepoErrorKind::Timeout, operation).with_lease(name);
    error.with_source(format!(
        "the backend did not keep its limit, and was cut off after {limit:?}"
    ))
}

fn cut_off(limit: Duration) -> Duration {
    limit * 5 / 4
}

//! The boxed twin of [`Repo`]: it keeps the backend's type out of `Lease`.

use std::future::{Future, pending};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;

use crate::{Acquire, Claim, LeaseName, Operation, Release, Renew, Repo, RepoError, RepoErrorKind};

pub(crate) type Answer<T> = Pin<Box<dyn Future<Output = Result<T, RepoError>> + Send>>;

/// As many answers as there were claims.
pub(crate) type Many = Pin<Box<dyn Future<Output = Vec<Result<Renew, RepoError>>> + Send>>;

/// Resolves when it is worth while to ask again.
pub(crate) type Hint = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) trait DynRepo: Send + Sync {
    fn acquire(&self, claim: Claim) -> Answer<Acquire>;
    fn renew(&self, claim: Claim) -> Answer<Renew>;
    fn release(&self, claim: Claim) -> Answer<Release>;
    fn renew_all(&self, claims: Vec<Claim>) -> Many;
    fn batch_size(&self) -> usize;
    fn freed(&self, name: LeaseName) -> Hint;
}

/// Each call owns its repo and its claim, so that it can outlive the caller.
pub(crate) struct Boxed<R>(Arc<R>);

impl<R: Repo> Boxed<R> {
    pub(crate) fn new(repo: R) -> Self {
        Self(Arc::new(repo))
    }
}

impl<R: Repo> DynRepo for Boxed<R> {
    fn acquire(&self, claim: Claim) -> Answer<Acquire> {
        let repo = self.0.clone();
        caught(Operation::Acquire, claim.name.clone(), async move {
            repo.acquire(&claim).await
        })
    }

    fn renew(&self, claim: Claim) -> Answer<Renew> {
        let repo = self.0.clone();
        caught(
            Operation::Renew,
            claim.name.clone(),
            async move { repo.renew(&claim).await },
        )
    }

    fn release(&self, claim: Claim) -> Answer<Release> {
        let repo = self.0.clone();
        caught(Operation::Release, claim.name.clone(), async move {
            repo.release(&claim).await
        })
    }

    /// A backend that panics has no answer, and one that forgets a claim has none for that one.
    fn renew_all(&self, claims: Vec<Claim>) -> Many {
        let repo = self.0.clone();
        Box::pin(async move {
            let answers = AssertUnwindSafe(repo.renew_all(&claims)).catch_unwind().await;
            let (mut answers, why) = match answers {
                Ok(answers) => (answers, "the backend gave no answer".to_owned()),
                Err(panic) => (Vec::new(), panicked(&*panic)),
            };
            answers.truncate(claims.len());
            for claim in &claims[answers.len()..] {
                let error = RepoError::new(RepoErrorKind::Other, Operation::Renew).with_lease(&claim.name);
                answers.push(Err(error.with_source(why.clone())));
            }
            answers
        })
    }

    fn batch_size(&self) -> usize {
        self.0.batch_size()
    }

    /// A backend that panics gives no hint.
    fn freed(&self, name: LeaseName) -> Hint {
        let repo = self.0.clone();
        let hint = AssertUnwindSafe(async move { repo.freed(&name).await }).catch_unwind();
        Box::pin(async move {
            if hint.await.is_err() {
                pending().await
            }
        })
    }
}

/// A backend that panics has no answer: it must not take the other leases' keeper with it.
fn caught<T>(
    operation: Operation,
    name: LeaseName,
    call: impl Future<Output = Result<T, RepoError>> + Send + 'static,
) -> Answer<T> {
    Box::pin(AssertUnwindSafe(call).catch_unwind().map(move |answer| {
        answer.unwrap_or_else(|panic| {
            let error = RepoError::new(RepoErrorKind::Other, operation).with_lease(&name);
            Err(error.with_source(panicked(&*panic)))
        })
    }))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    format!("the backend panicked: {}", panic_text(panic))
}

/// What a panic said, if it said a text.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}

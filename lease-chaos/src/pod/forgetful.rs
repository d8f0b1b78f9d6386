//! A store that forgets the holder: the checker must notice.

use lease_core::{Acquire, Claim, Inspect, Label, LeaseName, Note, Release, Renew, Repo, RepoError};

/// Whoever asks for a lease is granted it.
pub(super) struct Forgetful<R>(pub(super) R);

#[deny(clippy::missing_trait_methods)]
impl<R: Repo + Inspect> Repo for Forgetful<R> {
    async fn acquire(&self, claim: &Claim) -> Result<Acquire, RepoError> {
        match self.0.acquire(claim).await? {
            Acquire::Busy(_) => {
                let by = Label::new("forgetful").expect("a label");
                let why = Note::new("a rule broken on purpose").expect("a note");
                self.0.evict_now(&claim.name, &by, &why).await?;
                self.0.acquire(claim).await
            }
            granted => Ok(granted),
        }
    }

    async fn renew(&self, claim: &Claim) -> Result<Renew, RepoError> {
        self.0.renew(claim).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        self.0.release(claim).await
    }

    async fn renew_all(&self, claims: &[Claim]) -> Vec<Result<Renew, RepoError>> {
        self.0.renew_all(claims).await
    }

    fn batch_size(&self) -> usize {
        self.0.batch_size()
    }

    async fn freed(&self, name: &LeaseName) {
        self.0.freed(name).await;
    }
}

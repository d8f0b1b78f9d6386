//! [`ByRepo`]: the backend alone, without the thread that keeps leases.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use bench_harness::{Contender, Place};
use lease_core::{Acquire, Claim, Label, LeaseName, Release, Renew};

use crate::Backend;

/// One of the clients of one repo.
pub struct ByRepo<B> {
    repo: Arc<B>,
    label: Label,
    ttl: Duration,
}

impl<B: Backend> Contender for ByRepo<B> {
    type Guard = Claim;

    const RENEWS: bool = false;

    async fn prepare(place: &Place) -> anyhow::Result<()> {
        Ok(B::open(place, 1).await?.make_table().await?)
    }

    async fn open(place: &Place, clients: usize) -> anyhow::Result<Vec<Self>> {
        let repo = Arc::new(B::open(place, clients).await?);
        let label = Label::new("bench")?;
        let client = || Self {
            repo: repo.clone(),
            label: label.clone(),
            ttl: place.ttl,
        };
        Ok((0..clients).map(|_| client()).collect())
    }

    async fn try_acquire(&mut self, name: &str) -> anyhow::Result<Option<Claim>> {
        let claim = Claim::new(LeaseName::new(name)?, self.label.new_holder(), self.ttl);
        let answer = self.repo.acquire(&claim).await?;
        Ok(matches!(answer, Acquire::Granted(_)).then_some(claim))
    }

    async fn release(&mut self, claim: Claim) -> anyhow::Result<()> {
        ensure!(self.repo.release(&claim).await? == Release::Released, "it was ours");
        Ok(())
    }

    async fn renew(&mut self, claim: &mut Claim) -> anyhow::Result<()> {
        // Within a millisecond, SQLite's clock stands still, and it writes nothing that is as it was.
        claim.ttl += Duration::from_millis(1);
        ensure!(self.repo.renew(claim).await? == Renew::Renewed, "it is ours");
        Ok(())
    }
}

//! [`ByLease`]: as an application does it.

use std::marker::PhantomData;
use std::time::Duration;

use bench_harness::{Contender, Place};
use lease_core::{Guard, Lease, Wait};

use crate::Backend;

/// One of the clients of one `Lease`.
pub struct ByLease<B> {
    lease: Lease,
    ttl: Duration,
    backend: PhantomData<fn() -> B>,
}

impl<B: Backend> Contender for ByLease<B> {
    type Guard = Guard;

    const RENEWS: bool = true;

    /// With the keeper's thread that makes two.
    fn workers(_clients: usize) -> usize {
        1
    }

    async fn prepare(place: &Place) -> anyhow::Result<()> {
        Ok(B::open(place, 1).await?.make_table().await?)
    }

    async fn open(place: &Place, clients: usize) -> anyhow::Result<Vec<Self>> {
        let lease = Lease::new(B::open(place, clients).await?);
        let client = || Self {
            lease: lease.clone(),
            ttl: place.ttl,
            backend: PhantomData,
        };
        Ok((0..clients).map(|_| client()).collect())
    }

    async fn try_acquire(&mut self, name: &str) -> anyhow::Result<Option<Guard>> {
        Ok(self.lease.try_acquire(name, self.ttl).await?)
    }

    async fn acquire(&mut self, name: &str) -> anyhow::Result<Guard> {
        Ok(self.lease.acquire(name, self.ttl, Wait::Forever).await?)
    }

    async fn release(&mut self, guard: Guard) -> anyhow::Result<()> {
        guard.release().await?;
        Ok(())
    }

    fn is_lost(guard: &Guard) -> bool {
        !guard.held().is_live()
    }

    fn lasts(guard: &Guard) -> Option<Duration> {
        Some(guard.held().remaining())
    }
}

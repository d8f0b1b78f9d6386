//! [`ByHop`]: the backend behind a thread of its own and nothing else, which is what the way to the keeper's thread costs by itself.

use std::marker::PhantomData;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use bench_harness::{Contender, Place};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use lease_core::{Acquire, Claim, Label, LeaseName, Release, RepoError};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

use crate::Backend;

/// How much is taken at once.
const BATCH: usize = 64;

enum Asked {
    Acquire(Claim, oneshot::Sender<Result<Acquire, RepoError>>),
    Release(Claim, oneshot::Sender<Result<Release, RepoError>>),
}

enum Answered {
    Acquire(Result<Acquire, RepoError>, oneshot::Sender<Result<Acquire, RepoError>>),
    Release(Result<Release, RepoError>, oneshot::Sender<Result<Release, RepoError>>),
}

impl Answered {
    /// To who waits, if somebody still does.
    fn leave(self) {
        match self {
            Self::Acquire(answer, reply) => drop(reply.send(answer)),
            Self::Release(answer, reply) => drop(reply.send(answer)),
        }
    }
}

/// One of the clients of one thread with one repo.
pub struct ByHop<B> {
    thread: UnboundedSender<Asked>,
    label: Label,
    ttl: Duration,
    backend: PhantomData<fn() -> B>,
}

impl<B: Backend> Contender for ByHop<B> {
    type Guard = Claim;

    const RENEWS: bool = false;

    /// With the repo's thread that makes two.
    fn workers(_clients: usize) -> usize {
        1
    }

    async fn prepare(place: &Place) -> anyhow::Result<()> {
        Ok(B::open(place, 1).await?.make_table().await?)
    }

    async fn open(place: &Place, clients: usize) -> anyhow::Result<Vec<Self>> {
        let repo = Arc::new(B::open(place, clients).await?);
        let label = Label::new("bench")?;
        let (thread, asked) = mpsc::unbounded_channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        // As the keeper: a task, since to wake what is blocked on costs a look at all sockets.
        thread::spawn(move || drop(runtime.block_on(runtime.spawn(serve(repo, asked)))));
        let client = || Self {
            thread: thread.clone(),
            label: label.clone(),
            ttl: place.ttl,
            backend: PhantomData,
        };
        Ok((0..clients).map(|_| client()).collect())
    }

    async fn try_acquire(&mut self, name: &str) -> anyhow::Result<Option<Claim>> {
        let claim = Claim::new(LeaseName::new(name)?, self.label.new_holder(), self.ttl);
        let (reply, answer) = oneshot::channel();
        // If the thread has ended, so has the other half of the reply.
        let _ = self.thread.send(Asked::Acquire(claim.clone(), reply));
        let answer = answer.await.context("the thread has ended")??;
        Ok(matches!(answer, Acquire::Granted(_)).then_some(claim))
    }

    async fn release(&mut self, claim: Claim) -> anyhow::Result<()> {
        let (reply, answer) = oneshot::channel();
        let _ = self.thread.send(Asked::Release(claim, reply));
        let answer = answer.await.context("the thread has ended")??;
        ensure!(answer == Release::Released, "it was ours");
        Ok(())
    }
}

/// Runs statements side by side until nobody is left who asks. As the keeper's, answers leave after all that came at once was taken.
async fn serve<B: Backend>(repo: Arc<B>, mut asked: UnboundedReceiver<Asked>) {
    let mut calls: FuturesUnordered<BoxFuture<'static, Answered>> = FuturesUnordered::new();
    let (mut batch, mut answers) = (Vec::new(), Vec::new());
    loop {
        tokio::select! {
            biased;
            Some(answered) = calls.next() => answers.push(answered),
            count = asked.recv_many(&mut batch, BATCH) => if count == 0 { return },
        }
        while let Some(Some(answered)) = calls.next().now_or_never() {
            answers.push(answered);
        }
        for one in batch.drain(..) {
            calls.push(Box::pin(answered(repo.clone(), one)));
        }
        answers.drain(..).for_each(Answered::leave);
    }
}

async fn answered<B: Backend>(repo: Arc<B>, asked: Asked) -> Answered {
    match asked {
        Asked::Acquire(claim, reply) => Answered::Acquire(repo.acquire(&claim).await, reply),
        Asked::Release(claim, reply) => Answered::Release(repo.release(&claim).await, reply),
    }
}

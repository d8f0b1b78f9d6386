//! [`Wire`]: a pod's way to the store. Statements go to a server that lives on when the pod does not.

use std::sync::Arc;

use futures_util::future::join_all;
use lease_core::{Acquire, Claim, LeaseName, Loss, Operation, Release, Renew, Repo, RepoError, RepoErrorKind};
use tokio::sync::oneshot;

use super::body::{Body, Gated};
use super::faults::{Course, Fault, Reply};
use super::seen::{Answer, Executed, Sent, Statement, What};
use super::world::{NAMES, World};

/// How many renewals a statement waits out that is to execute at an expiry.
const RENEWED_MEANWHILE: usize = 4;

/// What the store said, in its own words.
enum Said {
    Acquire(Acquire),
    Renew(Renew),
    Release(Release),
}

/// The store as one `Lease` sees it.
pub struct Wire {
    /// The world with the store in it.
    pub world: Arc<World>,
    /// The process that sends.
    pub body: Arc<Body>,
    /// Which `Lease`.
    pub lease: usize,
}

impl Wire {
    async fn call(&self, statement: Statement, claim: &Claim) -> Result<Said, RepoError> {
        let mut answered = self.sent(statement, claim);
        // The process may stand still between its decision and the statement's departure.
        let said = Gated::new(self.body.clone(), self.exchange(answered.sent, claim)).await;
        answered.answer(&said);
        said
    }

    /// Puts on record that it is sent.
    fn sent(&self, statement: Statement, claim: &Claim) -> Answered<'_> {
        let sent = Sent {
            id: self.world.number(),
            statement,
            lease: self.lease,
            name: number_of(&claim.name),
            holder: self.world.holder(claim.holder.as_str()),
            at_least_for: claim.at_least_for_us(),
            at: self.body.now(),
        };
        self.world.see(What::Sent(sent));
        Answered {
            wire: self,
            sent,
            answer: Answer::Unknown,
        }
    }

    async fn exchange(&self, sent: Sent, claim: &Claim) -> Result<Said, RepoError> {
        let Course { fault, executes, reply } = self.world.course(sent.name, claim.ttl, claim.limit);
        let (tell, told) = oneshot::channel();
        let back = match reply {
            Reply::Answer(back) => Some((back, tell)),
            _ => None,
        };
        let [first, second] = executes;
        let first = first.map(|delay| (delay, 0, back));
        for (delay, copy, back) in first.into_iter().chain(second.map(|delay| (delay, 1, None))) {
            let (world, claim) = (self.world.clone(), claim.clone());
            drop(tokio::spawn(async move {
                world.sleep(delay).await;
                if fault == Some(Fault::AtExpiry) {
                    until_expiry(&world, sent.name).await;
                }
                let said = execute(&world, sent, copy, &claim).await;
                if let Some((back, tell)) = back {
                    world.sleep(back).await;
                    drop(tell.send(said));
                }
            }));
        }
        match reply {
            Reply::Answer(_) => match told.await {
                Ok(said) => Ok(said),
                Err(_) => std::future::pending().await,
            },
            Reply::Error { at, kind, never } => {
                self.world.sleep(at).await;
                Err(error(kind, never, sent.statement, &claim.name))
            }
            Reply::Never => std::future::pending().await,
        }
    }
}

/// A statement that is to execute at an expiry, and finds that the row was renewed meanwhile, waits for that expiry too.
async fn until_expiry(world: &World, name: usize) {
    for _ in 0..RENEWED_MEANWHILE {
        let Some(left) = world.to_renewed_expiry(name) else {
            return;
        };
        world.sleep(left).await;
    }
}

/// The store executes a statement, and it is seen what that does.
async fn execute(world: &World, sent: Sent, copy: u8, claim: &Claim) -> Said {
    let (before, now) = (world.rows(), world.store.now_us());
    let said = match sent.statement {
        Statement::Acquire => world.store.acquire(claim).await.map(Said::Acquire),
        Statement::Renew => world.store.renew(claim).await.map(Said::Renew),
        Statement::Release => world.store.release(claim).await.map(Said::Release),
    };
    let said = said.unwrap_or_else(|error| panic!("the store itself never fails: {error}"));
    let answer = said.answer();
    world.see(What::Executed(Box::new(Executed {
        sent,
        copy,
        now,
        ttl: claim.ttl_us(),
        before,
        after: world.rows(),
        answer,
    })));
    if matches!(answer, Answer::Granted(_)) {
        world.ask_clones(sent.name);
    }
    said
}

impl Said {
    const fn answer(&self) -> Answer {
        match self {
            Self::Acquire(Acquire::Granted(token)) => Answer::Granted(token.get()),
            Self::Acquire(Acquire::Busy(_)) => Answer::Busy,
            Self::Renew(Renew::Renewed) => Answer::Renewed,
            Self::Renew(Renew::Lost(loss)) => Answer::Lost {
                evicted: matches!(loss, Loss::Evicted { .. }),
            },
            Self::Release(Release::Released) => Answer::Released,
            Self::Release(Release::NotHeld) => Answer::NotHeld,
        }
    }
}

/// Puts the answer on record when the call ends, be it by being given up.
struct Answered<'a> {
    wire: &'a Wire,
    sent: Sent,
    answer: Answer,
}

impl Answered<'_> {
    const fn answer(&mut self, said: &Result<Said, RepoError>) {
        self.answer = match said {
            Ok(said) => said.answer(),
            Err(error) if error.may_have_executed() => Answer::Unknown,
            Err(_) => Answer::Never,
        };
    }
}

impl Drop for Answered<'_> {
    fn drop(&mut self) {
        let (sent, answer, at) = (self.sent, self.answer, self.wire.body.now());
        self.wire.world.see(What::Answered { sent, answer, at });
        if answer == Answer::Renewed {
            // Before the keeper knows of it, and after.
            let world = self.wire.world.clone();
            world.ask_clones(sent.name);
            drop(tokio::spawn(async move {
                world.sleep(1).await;
                world.ask_clones(sent.name);
            }));
        }
    }
}

fn error(kind: RepoErrorKind, never: bool, statement: Statement, name: &LeaseName) -> RepoError {
    let operation = match statement {
        Statement::Acquire => Operation::Acquire,
        Statement::Renew => Operation::Renew,
        Statement::Release => Operation::Release,
    };
    let error = RepoError::new(kind, operation).with_lease(name);
    if never { error.never_executed() } else { error }
}

/// The number of a name.
pub fn number_of(name: &LeaseName) -> usize {
    NAMES.iter().position(|known| known == name).unwrap_or(0)
}

fn renewed(said: Result<Said, RepoError>) -> Result<Renew, RepoError> {
    match said? {
        Said::Renew(answer) => Ok(answer),
        _ => unreachable!("a renewal is answered as one"),
    }
}

impl Repo for Wire {
    async fn acquire(&self, claim: &Claim) -> Result<Acquire, RepoError> {
        match self.call(Statement::Acquire, claim).await? {
            Said::Acquire(answer) => Ok(answer),
            _ => unreachable!("an acquire is answered as one"),
        }
    }

    async fn renew(&self, claim: &Claim) -> Result<Renew, RepoError> {
        renewed(self.call(Statement::Renew, claim).await)
    }

    fn batch_size(&self) -> usize {
        self.world.plan.batch
    }

    /// Each has a course of its own, and the batch is answered when all are: one that hangs leaves all without an answer,
    /// though they were executed.
    async fn renew_all(&self, claims: &[Claim]) -> Vec<Result<Renew, RepoError>> {
        let mut answered: Vec<Answered<'_>> = claims.iter().map(|claim| self.sent(Statement::Renew, claim)).collect();
        let exchanges = answered
            .iter()
            .zip(claims)
            .map(|(answered, claim)| self.exchange(answered.sent, claim));
        let said = Gated::new(self.body.clone(), join_all(exchanges)).await;
        for (answered, said) in answered.iter_mut().zip(&said) {
            answered.answer(said);
        }
        said.into_iter().map(renewed).collect()
    }

    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        match self.call(Statement::Release, claim).await? {
            Said::Release(answer) => Ok(answer),
            _ => unreachable!("a release is answered as one"),
        }
    }
}

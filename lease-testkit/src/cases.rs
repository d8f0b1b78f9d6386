//! The cases, one file a group. What each says stands in the list, `list.rs`.

use std::time::Duration;

use lease_core::{Acquire, Claim, Incumbent, Label, LeaseName, Loss, Release, Renew, Repo, Token};

use crate::Harness;

pub mod basic;
pub mod contention;
pub mod fencing;
pub mod inspect;
pub mod names;
pub mod release;
pub mod renewal;

/// The usual ttl: long enough that a slow server does not outlive it by accident.
pub(crate) const TTL: Duration = minutes(10);

pub(crate) const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

/// A claim to the lease `job` by a holder of its own.
pub(crate) fn claim(label: &str) -> Claim {
    claim_to("job", label)
}

/// A claim to a lease by a holder of its own.
pub(crate) fn claim_to(name: &str, label: &str) -> Claim {
    let name = LeaseName::new(name).expect("the case uses a legal name");
    let label = Label::new(label).expect("the case uses a legal label");
    Claim::new(name, label.new_holder(), TTL)
}

/// The same claim with another ttl.
pub(crate) fn for_ttl(claim: &Claim, ttl: Duration) -> Claim {
    let mut claim = claim.clone();
    claim.ttl = ttl;
    claim
}

/// The same holder's claim to another lease.
pub(crate) fn also_to(name: &str, claim: &Claim) -> Claim {
    let mut claim = claim.clone();
    claim.name = LeaseName::new(name).expect("the case uses a legal name");
    claim
}

/// A client whose calls must be answered, and as a case wants them answered.
///
/// Each `why` completes the sentence "it must ..., since ...".
pub(crate) struct Client<R>(pub(crate) R);

/// Two independent clients of the store.
pub(crate) async fn two<H: Harness>(store: &H) -> (Client<H::Repo>, Client<H::Repo>) {
    (Client(store.client().await), Client(store.client().await))
}

impl<R: Repo> Client<R> {
    pub(crate) async fn acquire(&self, claim: &Claim) -> Acquire {
        let answer = self.0.acquire(claim).await;
        answer.unwrap_or_else(|error| panic!("acquire must be answered on a healthy store: {error} ({error:?})"))
    }

    pub(crate) async fn renew(&self, claim: &Claim) -> Renew {
        let answer = self.0.renew(claim).await;
        answer.unwrap_or_else(|error| panic!("renew must be answered on a healthy store: {error} ({error:?})"))
    }

    pub(crate) async fn release(&self, claim: &Claim) -> Release {
        let answer = self.0.release(claim).await;
        answer.unwrap_or_else(|error| panic!("release must be answered on a healthy store: {error} ({error:?})"))
    }

    pub(crate) async fn wins(&self, claim: &Claim, why: &str) -> Token {
        match self.acquire(claim).await {
            Acquire::Granted(token) => token,
            busy @ Acquire::Busy(_) => panic!("{} must be granted, since {why}; got {busy:?}", claim.name),
        }
    }

    pub(crate) async fn is_busy(&self, claim: &Claim, why: &str) -> Option<Incumbent> {
        match self.acquire(claim).await {
            Acquire::Busy(incumbent) => incumbent,
            granted @ Acquire::Granted(_) => panic!("{} must be busy, since {why}; got {granted:?}", claim.name),
        }
    }

    pub(crate) async fn keeps(&self, claim: &Claim, why: &str) {
        let answer = self.renew(claim).await;
        assert_eq!(answer, Renew::Renewed, "{} must be renewed, since {why}", claim.name);
    }

    pub(crate) async fn has_lost(&self, claim: &Claim, why: &str) -> Loss {
        match self.renew(claim).await {
            Renew::Lost(loss) => loss,
            Renew::Renewed => panic!("{} must be lost, since {why}; it was renewed", claim.name),
        }
    }

    pub(crate) async fn frees(&self, claim: &Claim, why: &str) {
        let answer = self.release(claim).await;
        assert_eq!(
            answer,
            Release::Released,
            "{} must be released, since {why}",
            claim.name
        );
    }

    pub(crate) async fn frees_nothing(&self, claim: &Claim, why: &str) {
        let answer = self.release(claim).await;
        assert_eq!(
            answer,
            Release::NotHeld,
            "{} must not be released, since {why}",
            claim.name
        );
    }
}

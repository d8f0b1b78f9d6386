//! [`Own`]: the futures of the store itself. Who drops one does as the keeper does: he sends what undoes it.

use std::time::Duration;

use lease_core::{Acquire, BootClock, Claim, Clock, Inspect, Label, LeaseName, Note, Release, Renew, Repo};

use super::case::{TTL, text};
use super::point::{End, drop_at};
use super::{Backend, MOST_POLLS, Point, Product, Report, Rest, ensure};

mod stalled;

/// A future of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    List,
    Purge,
    Acquire,
    AcquireTaken,
    Renew,
    RenewLost,
    RenewAll,
    Release,
    ReleaseNotHeld,
    Freed,
    Get,
    Evict,
    EvictNow,
    Pause,
    Resume,
}

impl Own {
    /// Whether this is another point than the one without a rest.
    fn rests(self, polls: usize, rest: Rest) -> bool {
        match rest {
            Rest::None | Rest::Again => false,
            Rest::Time(_) => polls > 0,
            // The statement is on its way from the first poll or, where a connection is opened first, later.
            Rest::Real(_) => matches!(polls, 1 | 10),
            // Nothing ever wakes who waits for `freed` here.
            Rest::Woken => polls > 0 && self != Self::Freed,
        }
    }
}

/// Those that read all rows come first, while there are few.
const ALL: &[Own] = &[
    Own::List,
    Own::Purge,
    Own::Acquire,
    Own::AcquireTaken,
    Own::Renew,
    Own::RenewLost,
    Own::RenewAll,
    Own::Release,
    Own::ReleaseNotHeld,
    Own::Freed,
    Own::Get,
    Own::Evict,
    Own::EvictNow,
    Own::Pause,
    Own::Resume,
];

/// How long it may really take until a lease can be had again.
const LIMIT: Duration = Duration::from_secs(15);
/// How often `freed` is polled, which nothing ever wakes here.
const FREED_POLLS: usize = 1;

/// All of them, at each point.
pub(super) async fn run<B: Backend>(product: &Product<B>) -> Result<Report, String> {
    let mut report = Report::default();
    for own in ALL {
        let most = if *own == Own::Freed { FREED_POLLS } else { MOST_POLLS };
        let mut polls = 0;
        loop {
            let rests = product.rests.iter().filter(|rest| own.rests(polls, **rest));
            let mut ended = false;
            for rest in std::iter::once(&Rest::None).chain(rests) {
                let point = Point { polls, rest: *rest };
                let done = Box::pin(one(product, *own, point)).await;
                let done = done.map_err(|what| format!("{own:?}, dropped {point:?}: {what}"))?;
                report.count(own, done);
                if *rest == Rest::None && done {
                    ended = true;
                    break;
                }
            }
            if ended || (*own == Own::Freed && polls == most) {
                break;
            }
            ensure!(polls < most, "{own:?} never ends");
            polls += 1;
        }
        report.ends(own, polls);
    }
    stalled::run(product, &mut report).await?;
    Ok(report)
}

/// One combination. Answers whether the future ended by itself.
async fn one<B: Backend>(product: &Product<B>, own: Own, point: Point) -> Result<bool, String> {
    let (repo, eyes) = (product.backend.repo(), product.backend.eyes());
    let name = LeaseName::new(product.name()).map_err(text)?;
    let (claim, next) = (claim(&name)?, claim(&name)?);
    let by = Label::new("operator").map_err(text)?;
    let note = Note::new("the product").map_err(text)?;
    // On another client, so that the one under test may open its first connection in the future that is dropped.
    match own {
        Own::Acquire | Own::ReleaseNotHeld | Own::RenewLost | Own::Pause | Own::Freed => {}
        Own::AcquireTaken => drop(eyes.acquire(&next).await.map_err(text)?),
        Own::Resume => eyes.pause(&name, TTL, &by, &note).await.map_err(text)?,
        _ => drop(eyes.acquire(&claim).await.map_err(text)?),
    }
    macro_rules! dropped {
        ($future:expr) => {
            match drop_at(point, &product.time, || false, $future).await? {
                End::Ended(_) => true,
                End::Dropped => false,
            }
        };
    }
    let two = [claim.clone(), claim.clone()];
    let ended = match own {
        Own::Acquire | Own::AcquireTaken => dropped!(repo.acquire(&claim)),
        Own::Renew | Own::RenewLost => dropped!(repo.renew(&claim)),
        Own::RenewAll => dropped!(repo.renew_all(&two)),
        Own::Release | Own::ReleaseNotHeld => dropped!(repo.release(&claim)),
        Own::Freed => dropped!(repo.freed(&name)),
        Own::List => dropped!(repo.list()),
        Own::Get => dropped!(repo.get(&name)),
        Own::Evict => dropped!(repo.evict(&name, &by, &note)),
        Own::EvictNow => dropped!(repo.evict_now(&name, &by, &note)),
        Own::Pause => dropped!(repo.pause(&name, TTL, &by, &note)),
        Own::Resume => dropped!(repo.resume(&name)),
        Own::Purge => dropped!(repo.purge(TTL)),
    };
    let is_kept = matches!(own, Own::Renew | Own::RenewAll | Own::List | Own::Get | Own::Purge);
    if is_kept {
        let answer = repo.renew(&claim).await.map_err(text)?;
        ensure!(answer == Renew::Renewed, "the drop cost the lease: {answer:?}");
    }
    // As the keeper does, until it is free: what was dropped may still be executed.
    let start = BootClock.now();
    loop {
        free(&*repo, own, &claim).await?;
        if matches!(repo.acquire(&next).await.map_err(text)?, Acquire::Granted(_)) {
            break;
        }
        ensure!(BootClock.now().since(start) < LIMIT, "it never is free again");
    }
    answers_are_right(&*repo, product).await?;
    drop(repo);
    product.backend.sound().await?;
    Ok(ended)
}

/// Gives up all that a future may have taken.
async fn free<R: Repo + Inspect>(repo: &R, own: Own, claim: &Claim) -> Result<(), String> {
    repo.release(claim).await.map_err(text)?;
    match own {
        Own::Pause | Own::Resume => {
            repo.resume(&claim.name).await.map_err(text)?;
        }
        Own::Evict | Own::EvictNow => {
            let by = Label::new("operator").map_err(text)?;
            let note = Note::new("the product").map_err(text)?;
            repo.evict_now(&claim.name, &by, &note).await.map_err(text)?;
        }
        _ => {}
    }
    Ok(())
}

/// A connection on which an answer was left unread would give it to the next who asks.
async fn answers_are_right<B: Backend>(repo: &B::Repo, product: &Product<B>) -> Result<(), String> {
    let name = LeaseName::new(product.name()).map_err(text)?;
    let (held, other) = (claim(&name)?, claim(&name)?);
    let answer = repo.acquire(&held).await.map_err(text)?;
    ensure!(
        matches!(answer, Acquire::Granted(_)),
        "a lease that nobody has: {answer:?}"
    );
    for _ in 0..3 {
        let answers = (repo.renew(&other).await, repo.renew(&held).await);
        ensure!(
            matches!(answers, (Ok(Renew::Lost(_)), Ok(Renew::Renewed))),
            "wrong answers: {answers:?}"
        );
    }
    let answers = (repo.release(&held).await, repo.release(&held).await);
    ensure!(
        matches!(answers, (Ok(Release::Released), Ok(Release::NotHeld))),
        "wrong answers: {answers:?}"
    );
    Ok(())
}

fn claim(name: &LeaseName) -> Result<Claim, String> {
    let holder = Label::new("own").map_err(text)?.new_holder();
    Ok(Claim::new(name.clone(), holder, TTL))
}

//! Futures of the store that are dropped while their statement waits for a row that somebody else has locked.
//!
//! A connection that went back to its pool with such a statement on it would keep the next one waiting.

use std::time::Duration;

use lease_core::{Acquire, BootClock, Clock, Inspect, Label, LeaseName, Note, Repo};

use super::super::case::{TTL, text};
use super::super::point::{End, drop_at};
use super::super::{Backend, Point, Product, Report, Rest, ensure};
use super::{LIMIT, Own, answers_are_right, claim, free};

/// How long such a statement may wait: then it ends by itself.
const SHORT: Duration = Duration::from_millis(200);

/// Those that change a row.
const ALL: &[Own] = &[
    Own::Acquire,
    Own::Renew,
    Own::Release,
    Own::Evict,
    Own::EvictNow,
    Own::Pause,
    Own::Resume,
];

/// Where they are dropped: the statement is not sent, is on its way, waits.
const POINTS: &[Point] = &[
    Point {
        polls: 1,
        rest: Rest::None,
    },
    Point {
        polls: 1,
        rest: Rest::Real(Duration::from_micros(300)),
    },
    Point {
        polls: 1,
        rest: Rest::Real(Duration::from_millis(20)),
    },
];

/// Not dropped before its limit is over.
const END: Point = Point {
    polls: 80,
    rest: Rest::None,
};

pub(super) async fn run<B: Backend>(product: &Product<B>, report: &mut Report) -> Result<(), String> {
    for own in ALL {
        // The others have a limit that is too long to wait for.
        let has_a_limit = matches!(own, Own::Acquire | Own::Renew | Own::Release);
        let end = has_a_limit.then_some(&END);
        for point in POINTS.iter().chain(end) {
            let Some(ended) = Box::pin(one(product, *own, *point))
                .await
                .map_err(|what| format!("{own:?} of a locked row, dropped {point:?}: {what}"))?
            else {
                return Ok(());
            };
            ensure!(ended == (*point == END), "{own:?} of a locked row ended, or never does");
            report.count(&format!("{own:?}, locked"), ended);
        }
    }
    Ok(())
}

/// One combination. Answers whether the future ended by itself; nothing where rows can't be locked.
async fn one<B: Backend>(product: &Product<B>, own: Own, point: Point) -> Result<Option<bool>, String> {
    let (repo, eyes) = (product.backend.repo(), product.backend.eyes());
    let name = LeaseName::new(product.name()).map_err(text)?;
    let (claim, next) = (claim(&name)?.limit(SHORT), claim(&name)?);
    let by = Label::new("operator").map_err(text)?;
    let note = Note::new("the product").map_err(text)?;
    match own {
        // A pause of a lease that somebody has would last to the end of his time, resumed or not.
        Own::Acquire | Own::Pause => {}
        Own::Resume => eyes.pause(&name, TTL, &by, &note).await.map_err(text)?,
        _ => drop(eyes.acquire(&claim).await.map_err(text)?),
    }
    // A connection is there: what is dropped is the statement.
    repo.renew(&next).await.map_err(text)?;
    if !product.backend.lock(&name).await {
        return Ok(None);
    }
    macro_rules! dropped {
        ($future:expr) => {
            matches!(
                drop_at(point, &product.time, || false, $future).await?,
                End::Ended(_)
            )
        };
    }
    let ended = match own {
        Own::Acquire => dropped!(repo.acquire(&claim)),
        Own::Renew => dropped!(repo.renew(&claim)),
        Own::Release => dropped!(repo.release(&claim)),
        Own::Evict => dropped!(repo.evict(&name, &by, &note)),
        Own::EvictNow => dropped!(repo.evict_now(&name, &by, &note)),
        Own::Pause => dropped!(repo.pause(&name, TTL, &by, &note)),
        Own::Resume => dropped!(repo.resume(&name)),
        other => return Err(format!("{other:?} changes no row")),
    };
    // The row is still locked, and that is nobody else's affair.
    let right = answers_are_right(&*repo, product).await;
    product.backend.unlock().await;
    right?;
    let start = BootClock.now();
    loop {
        free(&*repo, own, &claim.clone().limit(LIMIT)).await?;
        if matches!(repo.acquire(&next).await.map_err(text)?, Acquire::Granted(_)) {
            break;
        }
        ensure!(BootClock.now().since(start) < LIMIT, "it never is free again");
    }
    drop(repo);
    product.backend.sound().await?;
    Ok(Some(ended))
}

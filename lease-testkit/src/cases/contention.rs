//! Several clients at once, each a task of its own. These hold with `delete_on_release` too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lease_core::{Acquire, Repo};
use tokio::sync::Barrier;
use tokio::task::{JoinSet, yield_now};

use super::{Client, TTL, claim, claim_to, minutes};
use crate::harness::pass;
use crate::{Harness, Overlap, Summary};

/// How often all clients together are refused before a case gives up: nobody would be granted any more.
const REFUSALS: u64 = 200_000;

pub async fn one_of_many_wins_an_absent_row<H: Harness>(store: &H) {
    let clients = clients(store, 16).await;
    for round in 0..10 {
        let name = format!("job-{round}");
        herd(&clients, &name).await;
    }
}

pub async fn one_of_many_wins_an_expired_row<H: Harness>(store: &H) {
    let clients = clients(store, 16).await;
    for _ in 0..10 {
        clients[0]
            .wins(&claim("before"), "the lease of the round before has expired")
            .await;
        pass(store, TTL).await;
        herd(&clients, "job").await;
        pass(store, TTL).await;
    }
}

pub async fn one_of_many_wins_a_released_row<H: Harness>(store: &H) {
    let clients = clients(store, 16).await;
    for _ in 0..10 {
        let before = claim("before");
        clients[0]
            .wins(&before, "the lease of the round before has expired")
            .await;
        clients[0].frees(&before, "it holds it").await;
        herd(&clients, "job").await;
        pass(store, TTL).await;
    }
}

pub async fn counter_is_exact<H: Harness>(store: &H) {
    let seen = contest(store, Overlap::new().ignoring_tokens(), 8, 25).await;
    assert_eq!(seen.sections, 200, "every turn enters once");
}

pub async fn holder_keeps_its_lease_among_contenders<H: Harness>(store: &H) {
    let clients = clients(store, 8).await;
    let held = claim("holder");
    clients[0].wins(&held, "there is no row").await;
    let contenders = spawn(clients[1..].iter().map(|client| {
        let client = Arc::clone(client);
        async move {
            for _ in 0..40 {
                client.is_busy(&claim("contender"), "its holder renews it").await;
                yield_now().await;
            }
        }
    }));
    for _ in 0..40 {
        clients[0].keeps(&held, "it holds it, whoever else asks").await;
        yield_now().await;
    }
    join(contenders).await;
}

/// Whichever comes first, the release stands: a renewal before it is overruled, one after it finds the lease lost.
pub async fn release_wins_over_a_renewal_in_flight<H: Harness>(store: &H) {
    let clients = clients(store, 2).await;
    for round in 0..50 {
        let held = claim("a").at_least_for(minutes(5));
        clients[0].wins(&held, "the release of the round before stands").await;
        let (first, second) = (Arc::clone(&clients[round % 2]), Arc::clone(&clients[1 - round % 2]));
        let (release, renewal) = (held.clone(), held.clone());
        let mut both = JoinSet::new();
        if round % 2 == 0 {
            both.spawn(async move { first.frees(&release, "it holds it").await });
            both.spawn(async move { drop(second.renew(&renewal).await) });
        } else {
            both.spawn(async move { drop(first.renew(&renewal).await) });
            both.spawn(async move { second.frees(&release, "it holds it").await });
        }
        join(both).await;
        pass(store, minutes(5)).await;
    }
}

pub async fn unrelated_names_do_not_wait_for_each_other<H: Harness>(store: &H) {
    let clients = clients(store, 8).await;
    let tasks = spawn(clients.iter().enumerate().map(|(index, client)| {
        let client = Arc::clone(client);
        async move {
            for _ in 0..20 {
                let held = claim_to(&format!("job-{index}"), "a");
                client.wins(&held, "nobody else asks for this name").await;
                client.keeps(&held, "nobody else asks for this name").await;
                client.frees(&held, "nobody else asks for this name").await;
                yield_now().await;
            }
        }
    }));
    join(tasks).await;
}

/// Clients around one lease until each had its turns. Each adds one to a counter in two steps, so an overlap loses one.
pub(super) async fn contest<H: Harness>(store: &H, overlap: Overlap, count: usize, turns: u64) -> Summary {
    let shared = Arc::new(Shared {
        overlap: overlap.clone(),
        ..Shared::default()
    });
    let tasks = spawn(clients(store, count).await.into_iter().map(|client| {
        let shared = Arc::clone(&shared);
        async move {
            for _ in 0..turns {
                take_turn(&client, &shared).await;
            }
        }
    }));
    join(tasks).await;
    let seen = overlap.finish().unwrap_or_else(|violation| panic!("{violation}"));
    let counter = shared.counter.load(Ordering::SeqCst);
    assert_eq!(
        counter,
        count as u64 * turns,
        "the counter lost steps, so two were inside at once"
    );
    seen
}

#[derive(Default)]
struct Shared {
    overlap: Overlap,
    counter: AtomicU64,
    refusals: AtomicU64,
}

async fn take_turn<R: Repo>(client: &Client<R>, shared: &Shared) {
    loop {
        let held = claim("contender");
        let Acquire::Granted(token) = client.acquire(&held).await else {
            let refused = shared.refusals.fetch_add(1, Ordering::SeqCst);
            assert!(
                refused < REFUSALS,
                "nobody was granted the lease any more, though every holder released it"
            );
            yield_now().await;
            continue;
        };
        shared.refusals.store(0, Ordering::SeqCst);
        let section = shared.overlap.enter(held.name.as_str(), token);
        let before = shared.counter.load(Ordering::SeqCst);
        yield_now().await;
        shared.counter.store(before + 1, Ordering::SeqCst);
        drop(section);
        client.frees(&held, "it holds it").await;
        return;
    }
}

/// All at once for one free lease: exactly one is granted, nobody is told of a failure, and the losers find it taken.
async fn herd<R: Repo>(clients: &[Arc<Client<R>>], name: &str) {
    let start = Arc::new(Barrier::new(clients.len()));
    let tries = spawn(clients.iter().map(|client| {
        let (client, start, claim) = (Arc::clone(client), Arc::clone(&start), claim_to(name, "one-of-many"));
        async move {
            start.wait().await;
            let answer = client.acquire(&claim).await;
            (claim, answer)
        }
    }));
    let answers = join(tries).await;
    let winners: Vec<_> = answers
        .iter()
        .filter(|(_, answer)| matches!(answer, Acquire::Granted(_)))
        .collect();
    assert_eq!(
        winners.len(),
        1,
        "one of {} must be granted {name}: {answers:?}",
        clients.len()
    );
    clients[0].keeps(&winners[0].0, "it was granted").await;
}

pub(super) async fn clients<H: Harness>(store: &H, count: usize) -> Vec<Arc<Client<H::Repo>>> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(Arc::new(Client(store.client().await)));
    }
    clients
}

/// Starts tasks in their order.
pub(super) fn spawn<T: Send + 'static>(
    tasks: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> JoinSet<T> {
    let mut set = JoinSet::new();
    tasks.for_each(|task| drop(set.spawn(task)));
    set
}

/// Waits for tasks. A panic of one is the case's; it ends the others first, which would meet a closed store.
pub(super) async fn join<T: 'static>(mut tasks: JoinSet<T>) -> Vec<T> {
    let mut ends = Vec::with_capacity(tasks.len());
    while let Some(end) = tasks.join_next().await {
        match end {
            Ok(end) => ends.push(end),
            Err(error) => {
                tasks.shutdown().await;
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }
    ends
}

//! What the keeper's thread costs a tick, on a store that answers at once.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use futures_util::future::join_all;
use lease_core::{Guard, Lease, MemoryRepo};
use tokio::runtime::{Builder, Runtime};

const TTL: Duration = Duration::from_secs(60);

/// With the keeper's thread that makes two.
fn runtime() -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime")
}

async fn pair(lease: &Lease, name: &str) {
    let guard = lease.try_acquire(name, TTL).await.expect("the store answers");
    guard
        .expect("nobody else has it")
        .release()
        .await
        .expect("the store answers");
}

/// Acquire and release by so many tasks at once.
fn pairs(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("keeper/acquire and release");
    for tasks in [1_usize, 8, 32] {
        let lease = Lease::new(MemoryRepo::new());
        let names: Vec<String> = (0..tasks).map(|task| format!("pair-{task}")).collect();
        group.throughput(criterion::Throughput::Elements(tasks as u64));
        group.bench_with_input(BenchmarkId::from_parameter(tasks), &names, |bencher, names| {
            bencher
                .to_async(&runtime)
                .iter(|| join_all(names.iter().map(|name| pair(&lease, name))));
        });
    }
}

/// Acquire and release while the same keeper has so many others.
fn beside_others(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("keeper/acquire and release beside");
    for others in [100_usize, 10_000] {
        let lease = Lease::new(MemoryRepo::new());
        let held: Vec<Guard> = runtime.block_on(async {
            let mut held = Vec::with_capacity(others);
            for other in 0..others {
                let guard = lease.try_acquire(format!("held-{other}"), TTL).await;
                held.push(guard.expect("the store answers").expect("nobody else has it"));
            }
            held
        });
        group.bench_function(BenchmarkId::from_parameter(others), |bencher| {
            bencher.to_async(&runtime).iter(|| pair(&lease, "pair"));
        });
        assert!(held.iter().all(|guard| guard.held().is_live()), "all are held");
    }
}

/// A tick that is lost to another pod.
fn lost(criterion: &mut Criterion) {
    let runtime = runtime();
    let repo = MemoryRepo::new();
    let (holder, loser) = (Lease::new(repo.clone()), Lease::new(repo));
    let held = runtime
        .block_on(holder.try_acquire("held", TTL))
        .expect("the store answers");
    criterion.bench_function("keeper/lost tick", |bencher| {
        bencher.to_async(&runtime).iter(async || {
            let lost = loser.try_acquire("held", TTL).await.expect("the store answers");
            assert!(lost.is_none(), "the other pod has it");
        });
    });
    assert!(held.is_some_and(|guard| guard.held().is_live()), "it is held");
}

criterion_group!(benches, pairs, beside_others, lost);
criterion_main!(benches);

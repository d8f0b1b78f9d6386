//! What the state machine of one tenure costs, without clock, thread or store.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use lease_core::tenure::{Effect, Event, Phase, Tenure};
use lease_core::{Moment, Options, Timing, Token};

const ASKED_AT: Moment = Moment::from_nanos(1_000_000_000);

fn timing() -> Timing {
    Timing::new(&Options::from(Duration::from_secs(30))).expect("the default relations hold")
}

/// Held since a moment after it was asked for.
fn held(timing: Timing, effects: &mut Vec<Effect>) -> Tenure {
    let mut tenure = Tenure::ask(timing, ASKED_AT);
    let granted_at = ASKED_AT + Duration::from_millis(1);
    let token = Token::new(7).expect("a legal token");
    tenure.handle(granted_at, Event::Granted(token), effects);
    tenure.handle(granted_at, Event::Started, effects);
    tenure
}

/// From the question to the answer of the release.
fn whole(criterion: &mut Criterion) {
    let timing = timing();
    let mut effects = Vec::new();
    criterion.bench_function("tenure/acquire and release", |bencher| {
        bencher.iter(|| {
            effects.clear();
            let mut tenure = held(black_box(timing), &mut effects);
            let ended_at = ASKED_AT + Duration::from_millis(6);
            tenure.handle(ended_at, Event::Finished { ran: true }, &mut effects);
            tenure.handle(ended_at + Duration::from_millis(1), Event::Released, &mut effects);
            assert_eq!(tenure.phase(), Phase::Ended);
            black_box(&effects).len()
        });
    });
}

/// One renewal, from the tick that it is due at to its answer.
fn renewal(criterion: &mut Criterion) {
    let timing = timing();
    let mut effects = Vec::new();
    criterion.bench_function("tenure/renewal", |bencher| {
        bencher.iter_batched_ref(
            || held(timing, &mut Vec::new()),
            |tenure| {
                effects.clear();
                let due = tenure.next_at().expect("a held lease is renewed");
                tenure.handle(due, Event::Tick, &mut effects);
                tenure.handle(due + Duration::from_millis(1), Event::Renewed, &mut effects);
                assert_eq!(tenure.phase(), Phase::Held);
                black_box(&effects).len()
            },
            BatchSize::SmallInput,
        );
    });
}

/// A tick that comes too early, as most do where many tenures share a keeper.
fn early_tick(criterion: &mut Criterion) {
    let mut effects = Vec::new();
    let mut tenure = held(timing(), &mut effects);
    let early = ASKED_AT + Duration::from_millis(2);
    effects.clear();
    criterion.bench_function("tenure/early tick", |bencher| {
        bencher.iter(|| {
            tenure.handle(black_box(early), Event::Tick, &mut effects);
            assert!(effects.is_empty());
        });
    });
}

criterion_group!(benches, whole, renewal, early_tick);
criterion_main!(benches);

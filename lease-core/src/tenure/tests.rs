//! The times of a tenure, every pair of state and event, and random schedules.

#[cfg(feature = "mutants")]
mod broken;
mod table;

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{Options, Token};

/// Times in milliseconds from `T0`. ttl 12 s: drift 0.12 s, margin 2 s, renewal every 4 s, retry after 1 s.
const T0: Moment = Moment::from_nanos(1 << 50);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(millis: u64) -> Moment {
    T0 + ms(millis)
}

fn timing() -> Timing {
    let options = Options::from(ms(12_000)).at_least_for(ms(3_000)).time_limit(ms(60_000));
    Timing::new(&options).unwrap()
}

fn token() -> Token {
    Token::new(7).unwrap()
}

fn step(tenure: &mut Tenure, millis: u64, event: Event) -> Vec<Effect> {
    let mut effects = Vec::new();
    tenure.handle(at(millis), event, &mut effects);
    effects
}

/// A tenure asked for at `T0` that has seen these events.
fn after(events: &[(u64, Event)]) -> Tenure {
    let mut tenure = Tenure::ask(timing(), T0);
    for (millis, event) in events {
        step(&mut tenure, *millis, *event);
    }
    tenure
}

const SPREAD: Spread = Spread::NONE;

/// Ticks whenever the tenure wants it, up to `until`, and answers what happened when.
fn run_until(tenure: &mut Tenure, until: u64) -> Vec<(u64, Effect)> {
    let mut log = Vec::new();
    while let Some(next) = tenure.next_at().filter(|next| *next <= at(until)) {
        assert!(log.len() < 1_000, "it never comes to rest: {tenure:?}");
        let millis = u64::try_from(next.since(T0).as_millis()).unwrap();
        let effects = step(tenure, millis, Event::Tick);
        assert!(
            !effects.is_empty(),
            "a tick at the time it was asked for does something: {tenure:?}"
        );
        log.extend(effects.into_iter().map(|effect| (millis, effect)));
    }
    log
}

#[test]
fn without_an_answer_f_is_told_at_stop_at_and_dropped_at_drop_at() {
    let mut tenure = after(&[(10, Event::Granted(token()))]);
    assert_eq!(tenure.drop_at(), at(11_880));
    let renew = Effect::Send(Call::Renew);
    let log = run_until(&mut tenure, 1_000_000);
    assert_eq!(
        log,
        [
            (4_000, renew),
            (10_000, Effect::Stop(Cause::Overdue)),
            (11_880, Effect::Drop)
        ]
    );
}

#[test]
fn the_time_counts_from_when_the_renewal_was_sent_not_from_its_answer() {
    let mut tenure = after(&[
        (10, Event::Granted(token())),
        (4_000, Event::Tick),
        (5_900, Event::Renewed),
    ]);
    assert_eq!(tenure.drop_at(), at(15_880));
    assert_eq!(tenure.next_at(), Some(at(8_000)));
    assert_eq!(step(&mut tenure, 7_999, Event::Tick), []);
    assert_eq!(step(&mut tenure, 8_000, Event::Tick), [Effect::Send(Call::Renew)]);
}

#[test]
fn a_renewal_that_is_half_due_comes_along_with_others() {
    let mut tenure = after(&[(10, Event::Granted(token()))]);
    assert_eq!(step(&mut tenure, 1_999, Event::Gather), []);
    assert_eq!(step(&mut tenure, 2_000, Event::Gather), [Effect::Send(Call::Renew)]);
    assert_eq!(step(&mut tenure, 2_100, Event::Gather), [], "one is under way");
    step(&mut tenure, 2_200, Event::Renewed);
    assert_eq!((tenure.drop_at(), tenure.next_at()), (at(13_880), Some(at(6_000))));
}

#[test]
fn a_renewal_that_was_left_out_counts_from_when_it_was_sent_alone() {
    let mut tenure = after(&[(10, Event::Granted(token())), (4_000, Event::Tick)]);
    assert_eq!(
        step(&mut tenure, 5_000, Event::LeftOut),
        [Effect::Send(Call::RenewAlone)]
    );
    step(&mut tenure, 5_100, Event::Renewed);
    assert_eq!(tenure.drop_at(), at(16_880));
    assert_eq!(step(&mut tenure, 5_200, Event::LeftOut), [], "none is under way");
}

#[test]
fn failed_renewals_are_retried_while_there_is_time() {
    let mut tenure = after(&[
        (10, Event::Granted(token())),
        (4_000, Event::Tick),
        (4_500, Event::RenewFailed(SPREAD)),
    ]);
    assert_eq!(tenure.next_at(), Some(at(5_500)), "a twelfth of the ttl later");
    assert_eq!(step(&mut tenure, 5_500, Event::Tick), [Effect::Send(Call::Renew)]);
    step(&mut tenure, 5_600, Event::Renewed);
    assert_eq!((tenure.phase(), tenure.drop_at()), (Phase::Held, at(17_380)));
    assert_eq!(Spread(0).of(ms(1_000)), ms(750));
    assert!((ms(1_247)..ms(1_250)).contains(&Spread(255).of(ms(1_000))));
}

#[test]
fn a_renewal_goes_on_while_f_winds_down_and_may_buy_it_time() {
    let mut tenure = after(&[
        (10, Event::Granted(token())),
        (20, Event::ShutDown),
        (4_000, Event::Tick),
    ]);
    step(&mut tenure, 4_100, Event::Renewed);
    assert_eq!((tenure.phase(), tenure.drop_at()), (Phase::Stopping, at(15_880)));
    assert_eq!(run_until(&mut tenure, 8_000), [(8_000, Effect::Send(Call::Renew))]);
}

#[test]
fn an_answer_at_drop_at_comes_too_late() {
    for (millis, revived) in [(11_879, true), (11_880, false)] {
        let mut tenure = after(&[(10, Event::Granted(token())), (4_000, Event::Tick)]);
        step(&mut tenure, millis, Event::Renewed);
        assert_eq!(tenure.drop_at() == at(15_880), revived, "answered at {millis} ms");
    }
}

#[test]
fn a_late_grant_is_renewed_first_and_a_very_late_one_is_given_back() {
    let give_back = Effect::Send(Call::Release {
        at_least_for: Duration::ZERO,
    });
    let late = Effect::Refuse(Refusal::Late);
    for (millis, phase, effects) in [
        (3_999, Phase::Held, vec![Effect::Grant(token())]),
        (4_000, Phase::Confirming, vec![Effect::Send(Call::Renew)]),
        (9_999, Phase::Confirming, vec![Effect::Send(Call::Renew)]),
        (10_000, Phase::Releasing, vec![late, give_back]),
    ] {
        let mut tenure = Tenure::ask(timing(), T0);
        assert_eq!(
            step(&mut tenure, millis, Event::Granted(token())),
            effects,
            "{millis} ms"
        );
        assert_eq!(tenure.phase(), phase, "{millis} ms");
    }
    let mut tenure = after(&[(5_000, Event::Granted(token()))]);
    assert_eq!(
        run_until(&mut tenure, 1_000_000),
        [(10_000, late), (10_000, give_back)],
        "its renewal hangs"
    );
}

#[test]
fn a_store_slower_than_renew_every_does_not_keep_a_lease_that_never_starts() {
    let mut tenure = after(&[(5_000, Event::Granted(token()))]);
    assert_eq!(
        step(&mut tenure, 9_000, Event::Renewed),
        [
            Effect::Refuse(Refusal::Late),
            Effect::Send(Call::Release {
                at_least_for: Duration::ZERO,
            })
        ],
        "that renewal was late too"
    );
    let mut tenure = after(&[(5_000, Event::Granted(token()))]);
    assert_eq!(step(&mut tenure, 8_999, Event::Renewed), [Effect::Grant(token())]);
    assert_eq!(tenure.drop_at(), at(5_000 + 11_880));
}

#[test]
fn a_time_limit_stops_and_drops_however_long_the_lease_lasts() {
    let mut tenure = after(&[(10, Event::Granted(token())), (500, Event::Started)]);
    step(&mut tenure, 700, Event::Started);
    let mut log = Vec::new();
    while let Some(next) = tenure.next_at() {
        assert!(log.len() < 1_000, "it never comes to rest: {tenure:?}");
        let millis = u64::try_from(next.since(T0).as_millis()).unwrap();
        let effects = step(&mut tenure, millis, Event::Tick);
        assert!(
            !effects.is_empty(),
            "a tick at the time it was asked for does something: {tenure:?}"
        );
        for effect in effects {
            log.push((millis, effect));
            if effect == Effect::Send(Call::Renew) {
                step(&mut tenure, millis, Event::Renewed);
            }
        }
    }
    log.retain(|(_, effect)| *effect != Effect::Send(Call::Renew));
    assert_eq!(log, [(58_500, Effect::Stop(Cause::TimeLimit)), (60_500, Effect::Drop)]);
    assert_eq!(tenure.drop_at(), at(60_500));
}

#[test]
fn an_undo_is_repeated_until_it_finds_something_or_two_ttl_have_passed() {
    let mut tenure = after(&[(
        10,
        Event::AcquireFailed {
            may_have_executed: true,
        },
    )]);
    let mut tries = 1;
    let mut now = 10;
    while tries < 1_000 {
        now += 5;
        step(&mut tenure, now, Event::NotHeld);
        let Some(next) = tenure.next_at() else { break };
        now = u64::try_from(next.since(T0).as_millis()).unwrap();
        if step(&mut tenure, now, Event::Tick).is_empty() {
            break;
        }
        tries += 1;
    }
    assert_eq!((tenure.phase(), tries, now), (Phase::Ended, 24, 24_010));
}

#[test]
fn a_release_whose_answer_is_late_is_not_given_up_meanwhile() {
    let mut tenure = after(&[(10, Event::Granted(token())), (20, Event::Finished { ran: true })]);
    assert_eq!(
        (tenure.next_at(), step(&mut tenure, 99_000, Event::Tick)),
        (None, vec![])
    );
    assert_eq!(
        step(&mut tenure, 99_001, Event::Released),
        [Effect::Settle(Settlement::Released)]
    );
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => Just(Event::Granted(token())),
        1 => Just(Event::Busy),
        1 => any::<bool>().prop_map(|may_have_executed| Event::AcquireFailed { may_have_executed }),
        6 => Just(Event::Renewed),
        1 => any::<bool>().prop_map(|evicted| Event::Lost { evicted }),
        3 => any::<u8>().prop_map(|spread| Event::RenewFailed(Spread(spread))),
        1 => Just(Event::Released),
        1 => Just(Event::NotHeld),
        1 => Just(Event::ReleaseFailed),
        1 => Just(Event::Started),
        1 => any::<bool>().prop_map(|ran| Event::Finished { ran }),
        1 => Just(Event::Abandoned),
        1 => Just(Event::ShutDown),
        1 => Just(Event::GraceOver),
        1 => Just(Event::Forsaken),
        9 => Just(Event::Tick),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    /// Random answers, errors, delays and clock jumps, checked against a reckoning of its own.
    #[test]
    fn whatever_happens_f_has_no_time_that_no_renewal_gave_it(
        schedule in proptest::collection::vec((0u64..6_000, any_event()), 1..60),
    ) {
        let mut tenure = Tenure::ask(timing(), T0);
        let mut now = 0;
        let (mut base, mut sent, mut ended) = (T0, None, false);
        let (mut grants, mut stops, mut drops, mut settled) = (0, 0, 0, 0);
        schedule.iter().try_for_each(|(delay, event)| {
            now += delay;
            let before = tenure.clone();
            let effects = step(&mut tenure, now, *event);
            // Only an answer to something that was sent gives time, and it counts from the sending.
            if *event == Event::Renewed && let Some(at) = sent.take() {
                base = at;
            }
            if matches!(event, Event::RenewFailed(_) | Event::Lost { .. }) {
                sent = None;
            }
            ended |= matches!(event, Event::Finished { .. } | Event::Abandoned | Event::Forsaken);
            for effect in &effects {
                match effect {
                    Effect::Send(Call::Renew | Call::RenewAlone) => {
                        prop_assert_eq!(sent.replace(at(now)), None, "two renewals under way");
                        prop_assert!(drops == 0, "renewed after f was dropped");
                    }
                    Effect::Send(Call::Release { .. }) => {
                        sent = None;
                        prop_assert!(grants == 0 || ended, "released before f's end");
                    }
                    Effect::Grant(_) => grants += 1,
                    Effect::Stop(_) => stops += 1,
                    Effect::Drop => drops += 1,
                    Effect::Settle(_) => settled += 1,
                    Effect::Refuse(_) => prop_assert_eq!(grants, 0),
                }
            }
            let running = matches!(tenure.phase(), Phase::Held | Phase::Stopping);
            if running {
                prop_assert!(tenure.drop_at() <= base + ms(11_880), "time that no answer gave");
                let was_running = matches!(before.phase(), Phase::Held | Phase::Stopping);
                if was_running && at(now) >= before.drop_at() {
                    prop_assert!(tenure.drop_at() <= before.drop_at(), "brought back after drop_at");
                }
            } else {
                prop_assert_eq!(tenure.drop_at(), Moment::ZERO);
            }
            if *event == Event::Tick && running {
                prop_assert!(drops > 0 || at(now) < tenure.drop_at(), "not dropped in time");
                prop_assert!(stops > 0 || at(now) < base + ms(10_000), "not told in time");
            }
            prop_assert!(tenure.next_at().is_none_or(|next| *event != Event::Tick || next > at(now)), "a tick that is not done");
            prop_assert!(grants <= 1 && stops <= 1 && drops <= 1 && settled <= grants);
            Ok(())
        })?;
        if tenure.phase() == Phase::Ended {
            prop_assert_eq!(settled, grants, "whoever had the lease is told once what became of it");
        }
    }
}

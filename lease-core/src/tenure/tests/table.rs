//! Every pair of state and event, as in `docs/adr/0001-tenure.md`.

use std::time::Duration;

use super::super::*;
use super::{SPREAD, after, ms, step, token};

fn states() -> Vec<(&'static str, Tenure)> {
    let granted = (10, Event::Granted(token()));
    let failed = (
        10,
        Event::AcquireFailed {
            may_have_executed: true,
        },
    );
    vec![
        ("asking", after(&[])),
        ("asking, abandoned", after(&[(5, Event::Abandoned)])),
        ("confirming", after(&[(4_000, Event::Granted(token()))])),
        ("held", after(&[granted])),
        ("held, started", after(&[granted, (10, Event::Started)])),
        ("held, renewing", after(&[granted, (4_000, Event::Tick)])),
        ("stopping", after(&[granted, (20, Event::ShutDown)])),
        (
            "stopping, lost",
            after(&[granted, (20, Event::Lost { evicted: false })]),
        ),
        (
            "stopping, evicted",
            after(&[granted, (20, Event::Lost { evicted: true })]),
        ),
        ("stopping, dropped", after(&[granted, (20, Event::GraceOver)])),
        ("releasing", after(&[granted, (20, Event::Finished { ran: true })])),
        (
            "releasing, told",
            after(&[granted, (20, Event::Finished { ran: true }), (30, Event::ReleaseFailed)]),
        ),
        ("undoing", after(&[failed])),
        ("undoing, waiting", after(&[failed, (30, Event::NotHeld)])),
        ("ended", after(&[(10, Event::Busy)])),
    ]
}

fn events() -> Vec<(&'static str, Event)> {
    vec![
        ("granted", Event::Granted(token())),
        ("busy", Event::Busy),
        (
            "acquire failed",
            Event::AcquireFailed {
                may_have_executed: true,
            },
        ),
        (
            "acquire never sent",
            Event::AcquireFailed {
                may_have_executed: false,
            },
        ),
        ("renewed", Event::Renewed),
        ("lost", Event::Lost { evicted: false }),
        ("evicted", Event::Lost { evicted: true }),
        ("renew failed", Event::RenewFailed(SPREAD)),
        ("released", Event::Released),
        ("not held", Event::NotHeld),
        ("release failed", Event::ReleaseFailed),
        ("started", Event::Started),
        ("finished", Event::Finished { ran: true }),
        ("never ran", Event::Finished { ran: false }),
        ("abandoned", Event::Abandoned),
        ("shut down", Event::ShutDown),
        ("grace over", Event::GraceOver),
        ("forsaken", Event::Forsaken),
        ("tick", Event::Tick),
        ("gather", Event::Gather),
        ("left out", Event::LeftOut),
    ]
}

/// What a pair leads to when it happens 6 s after the ask: after a renewal is due, before `stop_at`.
fn expected(state: &str, event: &str) -> Option<(Phase, Vec<Effect>)> {
    use Effect::{Drop, Grant, Refuse, Send, Settle, Stop};
    let give_back = Send(Call::Release {
        at_least_for: Duration::ZERO,
    });
    let release = Send(Call::Release {
        at_least_for: ms(3_000),
    });
    let renew = Send(Call::Renew);
    let running = state.starts_with("held") || state.starts_with("stopping");
    let fresh = state.starts_with("held");
    let lost = matches!(state, "stopping, lost" | "stopping, evicted");
    let over = matches!(state, "stopping, lost" | "stopping, dropped");
    let stop = |cause| fresh.then_some(Stop(cause)).into_iter();
    let drop = (!over).then_some(Drop);
    Some(match (state, event) {
        ("asking", "granted") => (Phase::Confirming, vec![renew]),
        ("asking", "busy") => (Phase::Ended, vec![Refuse(Refusal::Busy)]),
        ("asking", "acquire failed") => (Phase::Undoing, vec![Refuse(Refusal::Failed), give_back]),
        ("asking", "acquire never sent") => (Phase::Ended, vec![Refuse(Refusal::Failed)]),
        ("asking", "abandoned") => (Phase::Asking, vec![]),
        ("asking", "shut down") => (Phase::Asking, vec![Refuse(Refusal::ShuttingDown)]),
        ("asking, abandoned", "granted") => (Phase::Releasing, vec![give_back]),
        ("asking, abandoned", "busy" | "acquire never sent") => (Phase::Ended, vec![]),
        ("asking, abandoned", "acquire failed") => (Phase::Undoing, vec![give_back]),
        ("confirming", "renewed") => (Phase::Held, vec![Grant(token())]),
        ("confirming", "lost" | "evicted") => (Phase::Ended, vec![Refuse(Refusal::Busy)]),
        ("confirming", "renew failed") => (Phase::Releasing, vec![Refuse(Refusal::Failed), give_back]),
        ("confirming", "shut down") => (Phase::Releasing, vec![Refuse(Refusal::ShuttingDown), give_back]),
        ("confirming", "abandoned") => (Phase::Releasing, vec![give_back]),
        (_, "finished" | "never ran" | "abandoned") if lost => (Phase::Ended, vec![Settle(Settlement::NotHeld)]),
        (_, "finished") if running => (Phase::Releasing, vec![release]),
        (_, "never ran" | "abandoned") if running => (Phase::Releasing, vec![give_back]),
        (_, "forsaken") if running => (Phase::Ended, vec![Settle(Settlement::Forsaken)]),
        (_, "lost") if running => (Phase::Stopping, stop(Cause::Lost).chain(drop).collect()),
        (_, "evicted") if running => (Phase::Stopping, stop(Cause::Lost).collect()),
        (_, "shut down") if fresh => (Phase::Stopping, vec![Stop(Cause::ShutDown)]),
        (_, "grace over") if running => (Phase::Stopping, stop(Cause::ShutDown).chain(drop).collect()),
        ("held, renewing", "renewed" | "renew failed") => (Phase::Held, vec![]),
        ("held" | "held, started", "tick" | "gather") => (Phase::Held, vec![renew]),
        ("stopping", "tick" | "gather") => (Phase::Stopping, vec![renew]),
        ("held" | "held, started", "renew failed" | "started") => (Phase::Held, vec![]),
        ("held, renewing", "left out") => (Phase::Held, vec![Send(Call::RenewAlone)]),
        ("held, renewing", "started") => (Phase::Held, vec![]),
        (_, "started" | "renew failed") if running => (Phase::Stopping, vec![]),
        ("releasing", "released") => (Phase::Ended, vec![Settle(Settlement::Released)]),
        ("releasing", "not held") => (Phase::Ended, vec![Settle(Settlement::NotHeld)]),
        ("releasing", "release failed") => (Phase::Releasing, vec![Settle(Settlement::Failed)]),
        ("releasing, told", "released" | "not held") => (Phase::Ended, vec![]),
        ("releasing, told", "release failed") => (Phase::Releasing, vec![]),
        ("releasing, told", "tick") => (Phase::Releasing, vec![release]),
        ("undoing" | "undoing, waiting", "released") => (Phase::Ended, vec![]),
        ("undoing" | "undoing, waiting", "not held" | "release failed") => (Phase::Undoing, vec![]),
        ("undoing, waiting", "tick") => (Phase::Undoing, vec![give_back]),
        _ => return None,
    })
}

#[test]
fn every_pair_of_state_and_event_does_what_the_table_says() {
    for (state, before) in states() {
        for (event_name, event) in events() {
            let mut tenure = before.clone();
            let effects = step(&mut tenure, 6_000, event);
            match expected(state, event_name) {
                Some((phase, wanted)) => {
                    assert_eq!((tenure.phase(), effects), (phase, wanted), "{state} x {event_name}");
                }
                None => {
                    assert_eq!(effects, [], "{state} x {event_name}");
                    assert_eq!(tenure, before, "{state} x {event_name} must change nothing");
                }
            }
        }
    }
}

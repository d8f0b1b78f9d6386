use lease_proof::model::*;
use stateright::{Checker, Model};
fn env(name: &str, d: u32) -> u32 { std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(d) }
#[test]
fn explore() {
    let b = Bounds {
        name: "x", about: "", pods: env("PODS", 2) as u8, asks: env("ASKS", 1) as u8, horizon: env("H", 8),
        times: Times { at_least_for: env("ALF", 0), time_limit: (env("TL", 0) > 0).then_some(env("TL", 0)), ..Times::SHORT },
        network: if env("REP", 0) > 0 { Network::Repeats } else { Network::Fails },
        budget: Budget { faults: env("F", 0) as u8, clocks: env("C", 0) as u8, crashes: env("X", 0) as u8, evictions: env("E", 0) as u8,
            pauses: env("P", 0) as u8, abandons: env("A", 0) as u8, shutdowns: env("S", 0) as u8, returns: env("R", 0) as u8 },
        slack: Slack { answers: env("SA", u32::MAX), ticks: env("ST", u32::MAX), starts: env("SS", 0) > 0 },
    };
    let world = World::new(b, None).unwrap();
    let seen = world.sightings();
    let start = std::time::Instant::now();
    let max = env("MAX", 3_000_000) as usize;
    let checker = world.checker().threads(1).target_state_count(max).finish_when(stateright::HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!("unique {} states {} depth {} {:?} done {}", checker.unique_state_count(), checker.state_count(), checker.max_depth(), start.elapsed(), checker.is_done());
    println!("{seen}");
    for (name, path) in checker.discoveries() { println!("BROKEN {name}"); for a in path.clone().into_actions() { println!("   {a:?}"); } println!("{:#?}", path.last_state().pods); println!("{:#?}", path.last_state().rows);}
}

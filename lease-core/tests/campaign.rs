//! Leaders: one at a time, again and again.

mod world;

use std::sync::Mutex;
use std::time::Duration;

use futures_util::FutureExt;
use lease_core::{Event, Held, Inspect, Label, Note, OnLost, Options, Stop};
use tokio_util::sync::CancellationToken;
use world::{NAME, TTL, World, secs};

#[tokio::test(start_paused = true)]
async fn pods_lead_in_turn_when_a_leader_resigns_by_returning() {
    let world = World::new();
    let (shutdown, led, inside) = (
        CancellationToken::new(),
        Mutex::new(Vec::new()),
        tokio::sync::Mutex::new(()),
    );
    let pods = ["a", "b", "c"].map(|label| (label, world.pod(label)));
    let campaigns = futures_util::future::join_all(pods.iter().map(async |(label, pod)| {
        let campaign = pod.job(&NAME, TTL).unwrap().campaign();
        let lead = async |held: Held| {
            let _alone = inside.try_lock().expect("two leaders");
            led.lock().unwrap().push(*label);
            tokio::select! {
                _ = held.cancelled() => {}
                () = world.sleep(secs(1)) => {}
            }
            Ok::<_, &str>(())
        };
        campaign.run(shutdown.clone(), lead).await;
    }));
    let end = async {
        world.sleep(secs(60)).await;
        shutdown.cancel();
    };
    tokio::join!(campaigns, end);
    let led = led.into_inner().unwrap();
    assert!(led.len() > 20, "{led:?}");
    assert!(
        led.windows(2).all(|pair| pair[0] != pair[1]),
        "who resigned rests: {led:?}"
    );
    assert!(world.is_free());
}

#[tokio::test(start_paused = true)]
async fn a_lost_leader_is_told_and_stands_again() {
    let world = World::new();
    let pod = world.pod("a");
    let (shutdown, mut stops) = (CancellationToken::new(), Vec::new());
    let stop = shutdown.clone();
    let campaign = pod.job(&NAME, TTL).unwrap().campaign();
    let lead = async |held: Held| {
        if !stops.is_empty() {
            stop.cancel();
        }
        stops.push(held.cancelled().await);
        // To be dropped, if it was the row.
        world.sleep(secs(1)).await;
        Ok::<_, &str>(())
    };
    let lose = async {
        world.sleep(secs(20)).await;
        let (by, why) = ("ops".parse().unwrap(), "a drill".parse().unwrap());
        world.repo.evict(&NAME, &by, &why).await.unwrap();
    };
    tokio::join!(campaign.run(shutdown, lead), lose);
    assert!(matches!(&stops[..], [Stop::Lost(_), Stop::ShutDown]), "{stops:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_can_be_asked_to_resign_and_others_get_their_chance() {
    let world = World::new();
    let (a, b) = (world.pod("a"), world.pod("b"));
    let shutdown = CancellationToken::new();
    let campaign = a.job(&NAME, TTL).unwrap().campaign();
    let standing = campaign.standing();
    assert!(!standing.resign() && standing.is_healthy() && !standing.is_leading());
    let told = Mutex::new(None);
    let lead = async |held: Held| {
        *told.lock().unwrap() = Some(held.cancelled().await);
        Ok::<_, &str>(())
    };
    let ask = async {
        world.sleep(secs(5)).await;
        assert!(standing.is_leading());
        assert_eq!(world.row().unwrap().holder, standing.held().unwrap().holder().as_str());
        assert!(standing.resign());
        world.sleep(Duration::from_millis(100)).await;
        assert!(!standing.is_leading() && standing.held().is_none() && standing.is_healthy());
        let other = b.try_acquire(&NAME, TTL).await.unwrap().expect("it rests");
        shutdown.cancel();
        other.release().await.unwrap();
    };
    tokio::join!(campaign.run(shutdown.clone(), lead), ask);
    assert!(matches!(told.into_inner().unwrap(), Some(Stop::Resigned)));
}

/// A pod that leads though its lease is over had better be restarted; one that does not lead is well.
#[tokio::test(start_paused = true)]
async fn only_a_leader_whose_lease_is_over_is_unhealthy() {
    let world = World::new();
    let (a, b) = (world.pod("a"), world.pod("b"));
    let options = Options::from(TTL).on_lost(OnLost::SignalOnly);
    let mut campaign = a.job(&NAME, options).unwrap().campaign();
    let (standing, shutdown) = (campaign.standing(), CancellationToken::new());
    let mut standby = b.job(&NAME, TTL).unwrap().campaign();
    let guard = campaign.next(&shutdown).await.unwrap();
    assert!(standby.next(&shutdown).now_or_never().is_none());
    assert!(standby.standing().is_healthy() && standing.is_healthy() && standing.is_leading());
    world.repo.delete_row(&NAME);
    world.sleep(TTL).await;
    assert!(!standing.is_healthy() && !standing.is_leading());
    drop(guard);
    assert!(standing.is_healthy(), "it has ended");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_leader_is_followed_by_a_rest_and_a_shutdown_of_the_lease_ends_it() {
    let world = World::new();
    let pod = world.pod("a");
    let mut starts = Vec::new();
    let campaign = pod.job(&NAME, TTL).unwrap().campaign();
    let lead = async |_| {
        starts.push(world.repo.now_us());
        Err::<(), _>("no luck")
    };
    let end = async {
        world.sleep(secs(30)).await;
        pod.shutdown(secs(1)).await;
    };
    tokio::join!(campaign.run(CancellationToken::new(), lead), end);
    assert!((6..=8).contains(&starts.len()), "{starts:?}");
    let rest = i64::try_from((TTL / 3).as_micros()).unwrap();
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= rest), "{starts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_told_of_the_end_is_not_counted_as_stopped_once_more_when_its_lease_is_lost() {
    let world = World::new();
    let (pod, events) = world.observed("a");
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let lead = async |held: Held| {
        stop.cancel();
        held.cancelled().await;
        // It winds down, and meanwhile somebody takes the lease away.
        let (by, reason) = (Label::new("ops").unwrap(), Note::new("maintenance").unwrap());
        world.repo.evict_now(&NAME, &by, &reason).await.unwrap();
        world.sleep(TTL * 2).await;
        Ok::<_, &str>(())
    };
    pod.job(&NAME, TTL).unwrap().campaign().run(shutdown, lead).await;
    drop(pod);
    world.sleep(secs(1)).await;
    let stops = events.iter().filter_map(|event| match event {
        Event::Stopped { stop, .. } => Some(stop.as_str()),
        _ => None,
    });
    assert_eq!(stops.collect::<Vec<_>>(), ["shut_down"]);
}

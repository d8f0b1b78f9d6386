//! A job at intervals.

mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use lease_core::{Event, Lease, Options, Stop};
use tokio_util::sync::CancellationToken;
use world::{NAME, TTL, World, secs};

const EVERY: Duration = Duration::from_secs(1);

/// When each run was granted, by the store's clock, in microseconds.
type Grants = Mutex<Vec<i64>>;

/// Lets a pod tick until it is told to end; each run takes `work`.
async fn tick(world: &World, pod: &Lease, work: Duration, grants: &Grants, shutdown: &CancellationToken) {
    let periodic = pod.job(&NAME, TTL).unwrap().periodic(EVERY).unwrap();
    let f = async |_| {
        grants.lock().unwrap().push(world.row().unwrap().acquired_at);
        world.sleep(work).await;
        Ok::<_, &str>(())
    };
    periodic.run(shutdown.clone(), f).await;
}

/// Runs so many pods, each started at a time of its own, for so long.
async fn grants(world: &World, pods: u64, time: Duration) -> Vec<i64> {
    let (grants, shutdown) = (Grants::default(), CancellationToken::new());
    let all = join_all((0..pods).map(async |number| {
        let pod = world.pod(&format!("pod-{number}"));
        world.sleep(Duration::from_millis(number * 37 % 1_000)).await;
        tick(world, &pod, Duration::from_millis(5), &grants, &shutdown).await;
    }));
    let end = async {
        world.sleep(time).await;
        shutdown.cancel();
    };
    tokio::join!(all, end);
    grants.into_inner().unwrap()
}

fn regular(grants: &[i64], least: usize) {
    assert!(grants.len() >= least, "{} runs", grants.len());
    for pair in grants.windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap >= 990_000, "two grants {gap} us apart");
    }
}

/// C49: it ran every second interval, because the pod met its own minimum.
#[tokio::test(start_paused = true)]
async fn c49_one_pod_and_five_unaligned_ones_run_once_an_interval() {
    for pods in [1, 5] {
        let world = World::new();
        let grants = grants(&world, pods, secs(60)).await;
        regular(&grants, 57);
        assert!(grants.len() <= 61, "{} runs", grants.len());
    }
}

#[tokio::test(start_paused = true)]
async fn two_hundred_pods_run_once_an_interval_and_ask_about_once_each() {
    let world = World::new();
    let grants = grants(&world, 200, secs(60)).await;
    regular(&grants, 57);
    let tries = world.tries.lock().unwrap().len() / 60;
    println!("{tries} statements per interval by 200 pods, {} runs", grants.len());
    assert!((150..=450).contains(&tries), "{tries} tries per interval");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_leaves_or_dies_is_followed_by_another() {
    let world = World::new();
    let (grants, shutdown) = (Grants::default(), CancellationToken::new());
    let (a, b) = (world.pod("a"), world.pod("b"));
    let first = CancellationToken::new();
    let leave = async {
        world.sleep(secs(10)).await;
        first.cancel();
        world.sleep(secs(10)).await;
        shutdown.cancel();
    };
    let work = Duration::from_millis(1);
    tokio::join!(
        tick(&world, &a, work, &grants, &first),
        tick(&world, &b, work, &grants, &shutdown),
        leave
    );
    let grants = grants.into_inner().unwrap();
    regular(&grants, 19);
    assert!(
        grants.windows(2).all(|pair| pair[1] - pair[0] < 2_000_000),
        "{grants:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_longer_delays_the_next_and_nothing_is_made_up_for() {
    let world = World::new();
    let (grants, shutdown) = (Grants::default(), CancellationToken::new());
    let pod = world.pod("a");
    let end = async {
        world.sleep(secs(25)).await;
        shutdown.cancel();
    };
    tokio::join!(tick(&world, &pod, secs(2), &grants, &shutdown), end);
    let grants = grants.into_inner().unwrap();
    assert!((12..=13).contains(&grants.len()), "{} runs", grants.len());
}

#[tokio::test(start_paused = true)]
async fn an_error_is_an_event_and_the_next_tick_comes() {
    let world = World::new();
    let failed = Arc::new(Mutex::new(Vec::new()));
    let seen = failed.clone();
    let observer = move |event: &Event| {
        if let Event::Failed { name, error, .. } = event {
            seen.lock().unwrap().push(format!("{name}: {error}"));
        }
    };
    let pod = world.builder("a").observer(observer).build();
    let (shutdown, mut runs) = (CancellationToken::new(), 0);
    let periodic = pod.job(&NAME, TTL).unwrap().periodic(EVERY).unwrap();
    let stop = shutdown.clone();
    let f = async |_| {
        runs += 1;
        if runs == 3 {
            stop.cancel();
        }
        Err::<(), _>(format!("run {runs}"))
    };
    periodic.run(shutdown, f).await;
    assert_eq!(runs, 3);
    // They are on their way through a thread of its own, on real time.
    while failed.lock().unwrap().len() < 3 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(*failed.lock().unwrap(), ["job: run 1", "job: run 2", "job: run 3"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_tells_the_run_and_waits_for_its_end_under_the_lease() {
    let world = World::new();
    let pod = world.pod("a");
    let (shutdown, mut ended) = (CancellationToken::new(), false);
    let periodic = pod.job(&NAME, TTL).unwrap().periodic(EVERY).unwrap();
    let stop = shutdown.clone();
    let f = async |held: lease_core::Held| {
        stop.cancel();
        assert!(matches!(held.cancelled().await, Stop::ShutDown));
        world.sleep(TTL * 3).await;
        assert!(held.is_live(), "it is renewed until the end");
        ended = true;
        Ok::<_, &str>(())
    };
    periodic.run(shutdown, f).await;
    assert!(ended);
}

#[tokio::test(start_paused = true)]
async fn a_minimum_of_ones_own_counts_and_an_absurd_interval_is_refused() {
    let world = World::new();
    let pod = world.pod("a");
    let options = Options::from(TTL).at_least_for(secs(5));
    let mut periodic = pod.job(&NAME, options).unwrap().periodic(EVERY).unwrap();
    let shutdown = CancellationToken::new();
    drop(periodic.next(&shutdown).await.unwrap().run(async |_| ()).await);
    let row = world.row().unwrap();
    assert_eq!(row.expires_at - row.acquired_at, 5_000_000);
    for every in [Duration::ZERO, Duration::from_millis(99), secs(31 * 24 * 60 * 60)] {
        let error = pod.job(&NAME, TTL).unwrap().periodic(every).unwrap_err();
        assert!(error.to_string().contains("interval"), "{error}");
    }
    shutdown.cancel();
    assert!(periodic.next(&shutdown).await.is_none());
}

/// What is given to `run` may borrow from itself, and the whole may be spawned.
#[tokio::test(start_paused = true)]
async fn every_shape_of_f_is_accepted_and_can_be_spawned() {
    struct Db(u32);
    impl Db {
        async fn sync(&self, held: &lease_core::Held) -> Result<(), String> {
            assert!(held.is_live() && self.0 == 7);
            tokio::task::yield_now().await;
            Ok(())
        }
    }
    async fn plain(_: lease_core::Held) -> Result<(), String> {
        Ok(())
    }
    let world = World::new();
    let pod = world.pod("a");
    let job = |name: &str| pod.job(name, TTL).unwrap();
    let (shutdown, db) = (CancellationToken::new(), Db(7));
    let all = [
        tokio::spawn(job("1").periodic(EVERY).unwrap().run(shutdown.clone(), plain)),
        tokio::spawn(
            job("2")
                .periodic(EVERY)
                .unwrap()
                .run(shutdown.clone(), async move |held| db.sync(&held).await),
        ),
        tokio::spawn(
            job("3")
                .campaign()
                .run(shutdown.clone(), |_| async { Ok::<_, String>(()) }),
        ),
    ];
    world.sleep(secs(5)).await;
    shutdown.cancel();
    for task in all {
        task.await.unwrap();
    }
}

//! C7, C8, C11 and C12: whatever the server's defaults are, the answers are the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lease_core::{Acquire, DbTime, Inspect, Loss, Release, Renew, Repo};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::{Dialect, Mysql, Settings};
use mysql_async::prelude::Queryable;

use crate::support::{Database, claim, name, on_both, opts, pool};

on_both!(
    one_of_many_wins_and_a_counter_is_exact_at_every_isolation_level,
    the_servers_defaults_change_nothing,
    pods_in_different_zones_exclude_each_other_for_the_ttl,
    daylight_saving_moves_nothing,
    the_clock_passes_over_a_change_of_the_zone,
);

/// Several processes' worth of clients: each is a pool of its own.
const CLIENTS: usize = 8;
/// Rounds at each level. Two hundred take minutes, and are for measurements: `LEASE_HERD_ROUNDS=200`.
const ROUNDS: usize = 10;

fn isolation(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MariaDb => "tx_isolation",
        _ => "transaction_isolation",
    }
}

async fn one_of_many_wins_and_a_counter_is_exact_at_every_isolation_level(dialect: Dialect) {
    let rounds = std::env::var("LEASE_HERD_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let server = Mysql::private(dialect, &Settings::default()).unwrap();
    for level in ["READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"] {
        server.set(isolation(dialect), level).unwrap();
        let database = Database::on(&server);
        let first = database.repo().await;
        first.migrate().await.unwrap();
        let repos: Vec<_> = (0..CLIENTS).map(|_| Arc::new(first.clone())).collect();
        // C8, on a row that is absent and then on the same row, just expired.
        for round in 0..rounds {
            for expired in [false, true] {
                if expired {
                    database.run("UPDATE task_leases SET expires_at = UTC_TIMESTAMP(6)");
                }
                let tries: Vec<_> = (0..32)
                    .map(|at| {
                        let (repo, claim) = (repos[at % CLIENTS].clone(), claim(&format!("job {round}")));
                        tokio::spawn(async move { repo.acquire(&claim).await.unwrap() })
                    })
                    .collect();
                let mut won = 0;
                for one in tries {
                    won += usize::from(matches!(one.await.unwrap(), Acquire::Granted(_)));
                }
                assert_eq!(won, 1, "{level}, round {round}, expired {expired}");
            }
        }
        count(&repos, rounds, level).await;
    }
}

/// C7.
async fn count(repos: &[Arc<MysqlRepo>], rounds: usize, level: &str) {
    let counter = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = repos
        .iter()
        .map(|repo| {
            let (repo, counter) = (repo.clone(), counter.clone());
            tokio::spawn(async move {
                for _ in 0..rounds {
                    let claim = claim("counter");
                    while !matches!(repo.acquire(&claim).await.unwrap(), Acquire::Granted(_)) {}
                    let seen = counter.load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    counter.store(seen + 1, Ordering::SeqCst);
                    assert_eq!(repo.release(&claim).await.unwrap(), Release::Released);
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(counter.load(Ordering::SeqCst), (CLIENTS * rounds) as u64, "{level}");
}

/// Sessions of our own have all that they need, and one of the application's is left as it is.
async fn the_servers_defaults_change_nothing(dialect: Dialect) {
    let server = Mysql::private(dialect, &Settings::default()).unwrap();
    for (variable, value) in [
        ("sql_mode", ""),
        ("sql_mode", "ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES"),
        ("init_connect", "SET autocommit=0"),
        ("time_zone", "+09:00"),
        ("character_set_server", "latin1"),
    ] {
        server.set(variable, value).unwrap();
        let database = Database::on(&server);
        // What a superuser's sessions are spared.
        let user = database.name();
        database.run(&format!("CREATE USER {user}; GRANT ALL ON `{user}`.* TO {user}"));
        let (_, place) = database.url.split_once('@').unwrap();
        let url = format!("mysql://{user}@{place}");
        let own = MysqlRepo::connect(&url).await.unwrap();
        own.migrate().await.unwrap();
        own.check_schema().await.unwrap();
        let foreign = MysqlRepo::new(pool(&url, 2, "DO 0")).unwrap();
        for (one, two) in [(&own, &foreign), (&foreign, &own)] {
            let held = claim("größe 'x' \"y\" \\");
            assert!(
                matches!(one.acquire(&held).await.unwrap(), Acquire::Granted(_)),
                "{variable}"
            );
            assert!(
                matches!(two.acquire(&claim("größe 'x' \"y\" \\")).await.unwrap(), Acquire::Busy(Some(who)) if who.holder == held.holder.as_str()),
                "{variable}"
            );
            assert_eq!(two.renew(&held).await.unwrap(), Renew::Renewed);
            assert_eq!(two.list().await.unwrap().len(), 1);
            assert_eq!(one.release(&held).await.unwrap(), Release::Released);
            assert_eq!(two.release(&held).await.unwrap(), Release::NotHeld);
        }
        database.run(&format!("DROP USER {user}"));
        server.reset(variable).unwrap();
    }
}

/// C12.
async fn pods_in_different_zones_exclude_each_other_for_the_ttl(dialect: Dialect) {
    let (database, utc) = Database::migrated(dialect).await;
    let tokyo = MysqlRepo::new(pool(&database.url, 2, "SET time_zone = '+09:00'")).unwrap();
    for (one, two) in [(&tokyo, &utc), (&utc, &tokyo)] {
        let (first, second) = (claim("job"), claim("job"));
        assert!(matches!(one.acquire(&first).await.unwrap(), Acquire::Granted(_)));
        let Acquire::Busy(Some(who)) = two.acquire(&second).await.unwrap() else {
            panic!("it is held")
        };
        assert!(who.expires_in <= first.ttl && who.expires_in > first.ttl / 2, "{who:?}");
        database.age(first.ttl);
        assert!(matches!(two.acquire(&second).await.unwrap(), Acquire::Granted(_)));
        assert_eq!(two.release(&second).await.unwrap(), Release::Released);
    }
}

/// C11. The server's clock can't be set; the rows are moved to the gap and the fold instead, where a local time would not exist or
/// exist twice, and every operation and reading of them is judged by the instant alone.
async fn daylight_saving_moves_nothing(dialect: Dialect) {
    let (database, utc) = Database::migrated(dialect).await;
    let prague = MysqlRepo::new(pool(&database.url, 2, "SET time_zone = '+02:00'")).unwrap();
    // 02:30 local in the gap of 2026-03-29, and both times that are 02:30 local in the fold of 2026-10-25.
    for (instant, text) in [
        (1_774_747_800_i64, "2026-03-29 01:30:00"),
        (1_792_888_200, "2026-10-25 00:30:00"),
        (1_792_891_800, "2026-10-25 01:30:00"),
    ] {
        let held = claim("job");
        prague.acquire(&held).await.unwrap();
        database.run(&format!(
            "UPDATE task_leases SET acquired_at = '{text}', expires_at = '{text}' + INTERVAL 1800 SECOND"
        ));
        for repo in [&prague, &utc] {
            let row = repo.get(&name("job")).await.unwrap().unwrap();
            assert_eq!(row.acquired_at, DbTime::from_micros(instant * 1_000_000));
            assert_eq!(row.expires_at, DbTime::from_micros((instant + 1_800) * 1_000_000));
            assert_eq!(repo.renew(&held).await.unwrap(), Renew::Lost(Loss::Expired));
        }
        // A year from its acquire, through gap and fold: the length of a year in seconds, to the microsecond.
        let year = Duration::from_secs(365 * 86_400);
        let next = claim("job").at_least_for(year);
        assert!(matches!(prague.acquire(&next).await.unwrap(), Acquire::Granted(_)));
        assert_eq!(prague.release(&next).await.unwrap(), Release::Released);
        let row = utc.get(&name("job")).await.unwrap().unwrap();
        let length = row.expires_at.as_micros() - row.acquired_at.as_micros();
        assert_eq!(length, 365 * 86_400 * 1_000_000);
        database.run("DELETE FROM task_leases");
    }
}

/// The statements' clock is the time at which a statement began, and how far the session's clock went since; while it waited, the
/// zone may have put that clock forward or back. Its text with such times in their place says how far it went.
async fn the_clock_passes_over_a_change_of_the_zone(dialect: Dialect) {
    let database = Database::empty(dialect);
    let mut sql = mysql_async::Conn::new(opts(&database.url)).await.unwrap();
    // The fence's statement has the clock in it, and the repo shows that.
    let text = database.repo().await.fence_sql();
    let (_, clock) = text.split_once("expires_at > ").unwrap();
    let (clock, _) = clock.split_once(" FOR UPDATE").unwrap();
    for (began, now, went_us) in [
        ("10:00:00", "10:00:00", 0_i64),
        ("10:00:00", "10:00:04.999999", 4_999_999),
        // The server's clock was set back a little.
        ("10:00:00.000005", "10:00:00", -5),
        ("01:59:59", "03:00:01", 2_000_000),
        ("02:59:59", "02:00:01", 2_000_000),
        ("01:59:59", "02:30:01", 2_000_000),
    ] {
        let then = clock
            .replace("NOW(6)", &format!("TIMESTAMP'2026-03-29 {began}'"))
            .replace("SYSDATE(6)", &format!("TIMESTAMP'2026-03-29 {now}'"));
        let went = format!("SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), {then})");
        let went: Option<i64> = sql.query_first(went).await.unwrap();
        assert_eq!(went, Some(went_us), "{began} to {now}");
    }
}

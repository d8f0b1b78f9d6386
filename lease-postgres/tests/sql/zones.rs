//! C11 and C12: neither a session's time zone nor its daylight saving moves a lease.

use std::time::Duration;

use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use lease_core::{Acquire, DbTime, Inspect, Loss, Release, Renew, Repo};
use lease_postgres::PostgresRepo;

use crate::support::{Database, claim, name};

/// A repo whose sessions are in a zone, which diesel's own setup would otherwise put in UTC.
fn in_zone(database: &Database, zone: &'static str) -> PostgresRepo {
    let mut config = ManagerConfig::<AsyncPgConnection>::default();
    config.custom_setup = Box::new(move |url| {
        let url = url.to_owned();
        Box::pin(async move {
            let mut connection = AsyncPgConnection::establish(&url).await?;
            let set = format!("SET TIME ZONE '{zone}'");
            connection
                .batch_execute(&set)
                .await
                .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
            Ok(connection)
        })
    });
    let manager = AsyncDieselConnectionManager::new_with_config(&database.url, config);
    PostgresRepo::new(Pool::builder(manager).build().unwrap()).unwrap()
}

/// C12.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn pods_in_different_zones_exclude_each_other_for_the_ttl() {
    let (database, utc) = Database::migrated().await;
    let tokyo = in_zone(&database, "Asia/Tokyo");
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

/// C11. The server's clock can't be set; the rows are moved to the gap and the fold instead, where a local time
/// would not exist or exist twice, and every operation and reading of them is judged by the instant alone.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn daylight_saving_moves_nothing() {
    let (database, utc) = Database::migrated().await;
    database.set("timezone = 'Europe/Prague'");
    let prague = in_zone(&database, "Europe/Prague");
    let sql = database.sql().await;
    // 02:30 local in the gap of 2026-03-29, and both times that are 02:30 local in the fold of 2026-10-25.
    for instant in [1_774_747_800_i64, 1_792_888_200, 1_792_891_800] {
        let held = claim("job");
        prague.acquire(&held).await.unwrap();
        let moved = format!(
            "UPDATE task_leases SET acquired_at = to_timestamp({instant}), expires_at = to_timestamp({instant} + 1800)"
        );
        sql.batch_execute(&moved).await.unwrap();
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
        sql.batch_execute("DELETE FROM task_leases").await.unwrap();
    }
}

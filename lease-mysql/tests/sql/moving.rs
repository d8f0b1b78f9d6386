//! The statement of `docs/moving.md` that brings over what ShedLock has locked.

use std::time::Duration;

use lease_core::{Acquire, Inspect, Repo};
use lease_testkit::servers::Dialect;

use crate::support::{Database, claim, on_both};

on_both!(what_shedlock_has_locked_is_busy_until_its_time_and_the_rest_is_free);

const PAGE: &str = include_str!("../../../docs/moving.md");

async fn what_shedlock_has_locked_is_busy_until_its_time_and_the_rest_is_free(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    database.run(
        "CREATE TABLE shedlock (name VARCHAR(64) NOT NULL PRIMARY KEY, lock_until TIMESTAMP(3) NULL, locked_at TIMESTAMP(3) NULL, \
                                locked_by VARCHAR(255) NOT NULL) CHARACTER SET utf8mb4",
    );
    let statement = PAGE.split("```sql\n").nth(2).unwrap().split("```").next().unwrap();
    assert!(statement.contains("UTC_TIMESTAMP"), "{statement}");
    let ours = claim("ours");
    assert!(matches!(repo.acquire(&ours).await, Ok(Acquire::Granted(_))));
    // ShedLock's sessions and this one are in UTC, as the page says.
    let locks = "INSERT INTO shedlock VALUES
         ('held', UTC_TIMESTAMP(3) + INTERVAL 60 SECOND, UTC_TIMESTAMP(3), 'host'),
         ('over', UTC_TIMESTAMP(3) - INTERVAL 60 SECOND, UTC_TIMESTAMP(3), 'host'),
         ('ours', UTC_TIMESTAMP(3) + INTERVAL 60 SECOND, UTC_TIMESTAMP(3), 'host')";
    let utc = "SET SESSION time_zone = '+00:00'";
    database.run(&format!("{utc}; {locks}"));
    for _ in 0..2 {
        database.run(&format!("{utc}; {statement}"));
    }
    let Acquire::Busy(Some(incumbent)) = repo.acquire(&claim("held")).await.unwrap() else {
        panic!("it was locked");
    };
    assert_eq!(incumbent.holder, "shedlock");
    assert!((50..=60).contains(&incumbent.expires_in.as_secs()), "{incumbent:?}");
    assert!(matches!(repo.acquire(&claim("over")).await, Ok(Acquire::Granted(_))));
    assert!(repo.renew(&ours).await.is_ok());
    assert_eq!(repo.list().await.unwrap().len(), 3);
    database.age(Duration::from_secs(60));
    assert!(matches!(repo.acquire(&claim("held")).await, Ok(Acquire::Granted(_))));
}

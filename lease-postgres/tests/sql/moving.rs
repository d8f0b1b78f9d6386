//! The statement of `docs/moving.md` that brings over what ShedLock has locked.

use std::time::Duration;

use lease_core::{Acquire, Inspect, Repo};

use crate::support::{Database, claim};

const PAGE: &str = include_str!("../../../docs/moving.md");

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn what_shedlock_has_locked_is_busy_until_its_time_and_the_rest_is_free() {
    let (database, repo) = Database::migrated().await;
    // No zone of a session matters.
    database.set("timezone = 'Asia/Tokyo'");
    database.run(
        "CREATE TABLE shedlock (name varchar(64) PRIMARY KEY, lock_until timestamp NOT NULL, locked_at timestamp NOT NULL, \
                                locked_by varchar(255) NOT NULL);
         INSERT INTO shedlock
         SELECT name, timezone('utc', now()) + until, timezone('utc', now()), 'host'
           FROM (VALUES ('held', interval '60 s'), ('over', interval '-60 s'), ('ours', interval '60 s')) AS locks (name, until)",
    );
    let ours = claim("ours");
    assert!(matches!(repo.acquire(&ours).await, Ok(Acquire::Granted(_))));
    let statement = PAGE.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(statement.contains("AT TIME ZONE"), "{statement}");
    for _ in 0..2 {
        database.run(statement);
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

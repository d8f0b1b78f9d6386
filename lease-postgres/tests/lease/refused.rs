//! A password that is changed later, and a server that answers nothing: the right error, in time, and nothing is lost.

use lease_core::{Lease, Outcome, RepoErrorKind, Skip};
use lease_postgres::PostgresRepo;

use crate::world::{TTL, World, assert_kind, chain, kept, ms, secs, skips, sleep, ticks, within};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_password_that_is_changed_later_is_denied_until_it_is_changed_back() {
    let world = World::private().await;
    let sql = |text: &str| world.database.sql(text).unwrap();
    sql("CREATE ROLE pod LOGIN PASSWORD 'right'; GRANT SELECT, INSERT, UPDATE ON task_leases TO pod");
    let (_, address) = world.database.url().split_once('@').unwrap();
    let url = format!("postgres://pod:right@{address}");
    let lease = Lease::new(PostgresRepo::connect(&url).await.unwrap());
    ticks(&lease).await;
    // Renewed after three seconds; the ticks below take less.
    let outcome = lease.run("held", TTL * 3, async |_| {
        sql("ALTER ROLE pod PASSWORD 'wrong'");
        world.terminate();
        // The connection that was ended may be noticed only by the statement that is sent on it.
        let mut errors = Vec::new();
        while errors.len() < 4 {
            errors.push(skips(&lease).await);
        }
        let denied = errors.last().unwrap();
        assert_kind(denied, &[RepoErrorKind::Denied]);
        assert!(denied.to_string().contains("check user, password"), "{denied}");
        assert!(!chain(denied).contains("right"), "{}", chain(denied));
        sleep(TTL + ms(500)).await;
        sql("ALTER ROLE pod PASSWORD 'right'");
        ticks(&lease).await;
        sleep(TTL * 2).await;
    });
    kept(outcome.await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_server_that_answers_nothing_is_a_timeout_until_it_answers_again() {
    let world = World::private().await;
    let lease = world.pod().await;
    ticks(&lease).await;
    let outcome = lease.run("held", TTL * 4, async |_| {
        world.server().pause().unwrap();
        for _ in 0..3 {
            assert_kind(&skips(&lease).await, &[RepoErrorKind::Timeout]);
        }
        // By now a renewal, which is due after four seconds, has had no answer either.
        sleep(secs(3)).await;
        world.server().resume().unwrap();
        // An acquire that was sent while it was frozen may be executed now, and is undone.
        let free = async {
            loop {
                match lease.run("job", TTL, async |_| ()).await.unwrap() {
                    Outcome::Ran(_) => break,
                    Outcome::Skipped(Skip::Busy(_)) => sleep(ms(50)).await,
                    other => panic!("the tick does not run: {other:?}"),
                }
            }
        };
        within(secs(2), free).await;
        sleep(TTL * 3).await;
    });
    kept(outcome.await.unwrap());
}

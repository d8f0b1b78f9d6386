//! C53, through the whole lease.

use futures_util::future::join_all;
use lease_core::Held;
use tokio_postgres::NoTls;

use crate::world::{TTL, World, kept, sleep};

/// The table lacks a column that renewals don't need, so the migration has something to do, and a transaction that has
/// read the table keeps it from doing so for more than a ttl.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn c53_ten_pods_migrate_while_leases_are_renewed_and_a_transaction_holds_the_table() {
    let world = World::shared().await;
    let (mut reader, connection) = tokio_postgres::connect(world.database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let pods = join_all((0..10).map(|_| world.repo())).await;
    let lease = world.pod().await;
    let (all_held, migrated) = (tokio::sync::Barrier::new(6), tokio::sync::Barrier::new(6));
    let f = async |_: Held| {
        all_held.wait().await;
        migrated.wait().await;
        sleep(TTL).await;
    };
    let names: Vec<String> = (0..5).map(|number| format!("job {number}")).collect();
    let leases = join_all(names.iter().map(|name| lease.run(name, TTL, &f)));
    let migration = async {
        all_held.wait().await;
        world.database.sql("ALTER TABLE task_leases DROP note").unwrap();
        let long = reader.transaction().await.unwrap();
        long.batch_execute("SELECT count(*) FROM task_leases").await.unwrap();
        let migrating = tokio::spawn(async move { join_all(pods.iter().map(|pod| pod.migrate())).await });
        sleep(TTL * 3 / 2).await;
        assert!(!migrating.is_finished(), "the table was held all the time");
        long.commit().await.unwrap();
        for migrated in migrating.await.unwrap() {
            migrated.unwrap();
        }
        migrated.wait().await;
    };
    let (outcomes, ()) = tokio::join!(leases, migration);
    for outcome in outcomes {
        kept(outcome.unwrap());
    }
}

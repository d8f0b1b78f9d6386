//! A way to the server that leaves this machine.

use lease_core::Level;
use lease_postgres::PostgresRepo;

use crate::child::Part;
use crate::network::{Network, relay};
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and root: cargo xtask test"]
async fn a_plain_connection_that_leaves_the_machine_is_a_warning() {
    if Part::of_this_process().is_some() {
        return relay().await;
    }
    let world = World::private().await;
    let test = "diagnose::a_plain_connection_that_leaves_the_machine_is_a_warning";
    let network = Network::before(world.database.url(), test).await;
    for (url, level) in [
        (network.url.as_str(), Level::Warning),
        (world.database.url(), Level::Ok),
    ] {
        let findings = PostgresRepo::connect(url).await.unwrap().diagnose().await.unwrap();
        let found = findings.iter().find(|finding| finding.check == "encryption").unwrap();
        assert_eq!(found.level, level, "{found}");
    }
}

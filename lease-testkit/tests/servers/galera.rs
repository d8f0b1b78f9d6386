//! Clusters of MariaDB.

use lease_testkit::servers::Galera;

use crate::dialects::{Client, is_silent};
use crate::owner::{containers_of, is_owner, kill, networks_of, own, owner, wait_until};

/// Waits for what was written elsewhere, and reads.
const READ: &str = "SET SESSION wsrep_sync_wait = 1; SELECT i FROM mysql.of_test";

#[test]
#[ignore = "needs MariaDB with Galera: cargo xtask test"]
fn a_galera_cluster_goes_on_without_a_node_and_takes_it_back() {
    let cluster = Galera::start(3).unwrap();
    assert_eq!(cluster.size(), 3);
    cluster
        .node(0)
        .sql("CREATE TABLE mysql.of_test (i int PRIMARY KEY) ENGINE = InnoDB; INSERT INTO mysql.of_test VALUES (1)")
        .unwrap();
    assert_eq!(cluster.node(2).sql(READ).unwrap(), ["1"]);

    cluster.kill(0).unwrap();
    wait_until("two are left", || cluster.size() == 2);
    cluster.node(1).sql("INSERT INTO mysql.of_test VALUES (2)").unwrap();
    cluster.restart(0).unwrap();
    wait_until("it is back", || cluster.size() == 3);
    assert_eq!(cluster.node(0).sql(READ).unwrap(), ["1", "2"]);

    cluster.isolate(1).unwrap();
    wait_until("it refuses statements", || refuses(&cluster, 1));
    wait_until("two are left", || cluster.size() == 2);
    cluster.node(2).sql("INSERT INTO mysql.of_test VALUES (3)").unwrap();
    cluster.reconnect(1).unwrap();
    wait_until("it is back", || cluster.size() == 3);
    assert_eq!(cluster.node(1).sql(READ).unwrap(), ["1", "2", "3"]);

    cluster.cut_off(2).unwrap();
    wait_until("two are left", || cluster.size() == 2);
    assert!(is_silent(cluster.node(2).url()));
    cluster.node(1).sql("INSERT INTO mysql.of_test VALUES (4)").unwrap();
    cluster.reconnect(2).unwrap();
    wait_until("it is back", || cluster.size() == 3);
    assert_eq!(cluster.node(2).sql(READ).unwrap(), ["1", "2", "3", "4"]);
}

fn refuses(cluster: &Galera, index: usize) -> bool {
    let mut client = Client::connect(cluster.node(index).url()).unwrap();
    let answer = client.run("SELECT i FROM mysql.of_test");
    answer.is_err_and(|error| matches!(error, mysql_async::Error::Server(error) if error.code == 1047))
}

#[test]
#[ignore = "needs MariaDB with Galera: cargo xtask test"]
fn a_galera_cluster_is_gone_after_its_owner_was_killed() {
    if is_owner() {
        own(Galera::start(1).unwrap().node(0).url());
    }
    let (owner, _url) = owner("galera::a_galera_cluster_is_gone_after_its_owner_was_killed");
    let id = owner.id();
    assert_eq!((containers_of(id), networks_of(id)), (1, 1));
    kill(owner);
    wait_until("it is gone", || containers_of(id) + networks_of(id) == 0);
}

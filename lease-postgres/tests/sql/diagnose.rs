//! What `diagnose` says of real servers: each level of each line that a server can be brought to.

use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use lease_core::{Finding, Level, RepoErrorKind};
use lease_postgres::PostgresRepo;
use lease_testkit::servers::{Pooler, Postgres, Settings, Source};

use crate::support::tls::Verified;
use crate::support::{Database, block_on};

const ALL: [&str; 15] = [
    "connection",
    "version",
    "pooler",
    "encryption",
    "latency",
    "clock_offset",
    "clock_steps",
    "time_zone",
    "isolation",
    "replication",
    "durability",
    "connections",
    "schema",
    "collation",
    "hooks",
];

async fn diagnosis(url: &str) -> Vec<Finding> {
    PostgresRepo::connect(url).await.unwrap().diagnose().await.unwrap()
}

#[track_caller]
fn assert_level(findings: &[Finding], check: &str, level: Level, words: &str) {
    let finding = findings.iter().find(|finding| finding.check == check);
    let finding = finding.unwrap_or_else(|| panic!("no {check}: {findings:#?}"));
    assert_eq!(finding.level, level, "{finding}");
    assert!(finding.to_string().contains(words), "{finding}");
    assert_eq!(finding.advice.is_none(), level == Level::Ok, "{finding}");
}

/// The same database, for a role without rights.
fn as_pod(database: &Database) -> String {
    database.run("CREATE ROLE pod LOGIN PASSWORD 'pod'");
    let (_, place) = database.url.split_once('@').unwrap();
    format!("postgres://pod:pod@{place}")
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_server_has_a_line_for_each_thing_that_leases_hang_on_and_each_says_what_is_wrong() {
    let server = Postgres::private(&Settings::durable()).unwrap();
    let database = Database::on(&server);
    database.repo().await.migrate().await.unwrap();
    let fine = diagnosis(&database.url).await;
    let checks: Vec<&str> = fine.iter().map(|finding| finding.check).collect();
    assert_eq!(checks, [&ALL[..], &["privileges"]].concat());
    // The machine may be busy.
    for finding in fine.iter().filter(|finding| finding.check != "latency") {
        assert_eq!(finding.level, Level::Ok, "{finding}");
        assert_eq!(finding.advice, None, "{finding}");
    }

    // Whatever breaks a promise only in some case, at once.
    let pod = as_pod(&database);
    server.set("synchronous_commit", "off").unwrap();
    server.set("full_page_writes", "off").unwrap();
    database.run(
        "GRANT SELECT, INSERT, UPDATE ON task_leases TO pod;
         CREATE COLLATION mine (provider = icu, locale = 'en');
         ALTER TABLE task_leases ALTER name TYPE varchar(128) COLLATE mine;
         CREATE INDEX expiries ON task_leases (expires_at);
         ALTER TABLE task_leases RESET (fillfactor);
         CREATE POLICY everything ON task_leases USING (true);
         ALTER TABLE task_leases ENABLE ROW LEVEL SECURITY;
         CREATE RULE twice AS ON DELETE TO task_leases DO ALSO SELECT 1;
         CREATE TRIGGER twice BEFORE UPDATE ON task_leases FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
         ALTER ROLE pod CONNECTION LIMIT 5",
    );
    let weak = diagnosis(&pod).await;
    let warned = |check, words| assert_level(&weak, check, Level::Warning, words);
    warned("durability", "full_page_writes = off, synchronous_commit = off");
    warned("connections", "4 more are free");
    warned("collation", "sorted by mine");
    warned("hooks", "security applies to this role, it has triggers, it has rules");
    warned("privileges", "purge needs it");
    let slow: Vec<&Finding> = weak.iter().filter(|finding| finding.check == "speed").collect();
    assert_eq!(slow.len(), 2, "{slow:?}");
    assert!(
        slow[0].found.contains("expiries") && slow[0].advice.as_deref() == Some("drop it"),
        "{slow:?}"
    );
    assert_level(&weak, "connection", Level::Ok, "as role pod");
    assert_level(&weak, "schema", Level::Ok, "");

    // What keeps leases from working, at once.
    database.run("REVOKE UPDATE ON task_leases FROM pod; ALTER TABLE task_leases DROP COLUMN released_at");
    database.set("default_transaction_read_only = on");
    let broken = diagnosis(&pod).await;
    assert_level(
        &broken,
        "replication",
        Level::Error(RepoErrorKind::ReadOnly),
        "default_transaction_read_only",
    );
    assert_level(
        &broken,
        "schema",
        Level::Error(RepoErrorKind::SchemaMismatch),
        "released_at is missing",
    );
    assert_level(
        &broken,
        "privileges",
        Level::Error(RepoErrorKind::Denied),
        "GRANT UPDATE, DELETE",
    );

    database.set("default_transaction_read_only = off");
    database.run("DROP TABLE task_leases");
    server.set("synchronous_standby_names", "nobody").unwrap();
    let alone = diagnosis(&database.url).await;
    assert_level(
        &alone,
        "schema",
        Level::Error(RepoErrorKind::SchemaMissing),
        "run migrate",
    );
    assert_level(
        &alone,
        "replication",
        Level::Error(RepoErrorKind::Unavailable),
        "none follows",
    );
    server.reset("synchronous_standby_names").unwrap();
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn what_the_role_may_not_reach_or_must_be_able_to_delete_is_an_error() {
    let server = Postgres::private(&Settings::default()).unwrap();
    let database = Database::on(&server);
    let pod = as_pod(&database);
    database.run("CREATE SCHEMA ops; GRANT USAGE ON SCHEMA ops TO pod");
    database.set("search_path = ops");
    database.repo().await.migrate().await.unwrap();
    database.run("GRANT SELECT, INSERT, UPDATE ON ops.task_leases TO pod");
    let repo = PostgresRepo::connect(&pod).await.unwrap();
    let deletes = repo.clone().delete_on_release(true).diagnose().await.unwrap();
    assert_level(&deletes, "privileges", Level::Error(RepoErrorKind::Denied), "DELETE");
    // These servers don't wait for their disks.
    assert_level(&deletes, "durability", Level::Warning, "fsync = off");
    database.run("REVOKE USAGE ON SCHEMA ops FROM pod");
    // Also if it is named, where the look for the table is an error of the server's.
    let named = repo.clone().table("ops.task_leases").unwrap();
    assert_eq!(named.check_schema().await.unwrap_err().kind(), RepoErrorKind::Denied);
    let shut = named.diagnose().await.unwrap();
    assert_level(&shut, "schema", Level::Error(RepoErrorKind::Denied), "no USAGE");
    let shut = repo.diagnose().await.unwrap();
    assert_level(&shut, "schema", Level::Error(RepoErrorKind::Denied), "no USAGE");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_standby_is_an_error_and_one_that_is_not_synchronous_a_warning() {
    let server = || Postgres::private(&Settings::default().source(Source::Local).password("of both")).unwrap();
    let (primary, standby) = (server(), server());
    standby.follow(&primary).unwrap();
    let follower = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state ";
    let until = |found: &str| {
        // Each look is a connection of its own, so this is some seconds.
        let there = (0..1_000).any(|_| primary.sql(&format!("{follower}{found}")).unwrap() == ["1"]);
        assert!(there, "no standby whose sync_state {found}");
    };
    until("= 'async'");
    let standby_says = diagnosis(standby.url()).await;
    assert_level(
        &standby_says,
        "replication",
        Level::Error(RepoErrorKind::ReadOnly),
        "target_session_attrs",
    );
    assert_level(
        &diagnosis(primary.url()).await,
        "replication",
        Level::Warning,
        "1 standbys, none of them",
    );
    primary.set("synchronous_standby_names", "*").unwrap();
    until("= 'sync'");
    assert_level(&diagnosis(primary.url()).await, "replication", Level::Ok, "1 of 1");
    primary.sql("CREATE ROLE pod LOGIN PASSWORD 'pod'").unwrap();
    let pod = primary
        .url()
        .replace("postgres:of%20both", "pod:pod")
        .replace("postgres:of both", "pod:pod");
    assert_level(
        &diagnosis(&pod).await,
        "replication",
        Level::Warning,
        "grant pg_monitor",
    );
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_pooler_that_may_be_used_is_a_warning() {
    let pooler = Pooler::before(Postgres::shared().unwrap(), &[("max_prepared_statements", "200")]).unwrap();
    let database = Database::empty().through(&pooler);
    assert_level(
        &diagnosis(&database.url).await,
        "pooler",
        Level::Warning,
        "transaction mode",
    );
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_pool_of_the_application_without_its_settings_is_a_warning() {
    block_on(async {
        let database = Database::empty();
        let repo = |url: &str| {
            let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new(url);
            PostgresRepo::new(Pool::builder(manager).max_size(1).build().unwrap()).unwrap()
        };
        let bare = repo(&database.url).diagnose().await.unwrap();
        assert_level(&bare, "pooler", Level::Warning, "set statement_timeout");
        let url = format!(
            "{}?options=-c%20statement_timeout%3D6000%20-c%20enable_seqscan%3Doff",
            database.url
        );
        assert_level(
            &repo(&url).diagnose().await.unwrap(),
            "pooler",
            Level::Ok,
            "application's",
        );
    });
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn an_encrypted_session_says_by_what() {
    let database = Verified::shared().database();
    assert_level(&diagnosis(&database.url).await, "encryption", Level::Ok, "TLSv1.");
    let unverified = database.url.replace("verify-full", "prefer");
    assert_level(
        &diagnosis(&unverified).await,
        "encryption",
        Level::Ok,
        "not looked at; it stays on this machine",
    );
}

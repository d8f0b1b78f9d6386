//! The grants of SECURITY.md: a role with exactly these can do what the page says, and no more.

use std::time::Duration;

use lease_core::{Acquire, Evict, Inspect, Label, Note, Release, Renew, Repo, RepoErrorKind};
use lease_postgres::PostgresRepo;

use crate::support::{Database, chain, claim};

const PAGE: &str = include_str!("../../../SECURITY.md");

/// The page's statements for this engine: for pods, operators, and those who only look.
fn statements() -> [&'static str; 3] {
    let section = PAGE.split_once("### PostgreSQL\n").unwrap().1;
    let section = section.split("\n### ").next().unwrap();
    let blocks = section.split("```sql\n").skip(1);
    let blocks: Vec<&str> = blocks.map(|block| block.split("```").next().unwrap()).collect();
    blocks.try_into().unwrap()
}

/// A role of its own with these rights, and its repo. It is dropped with its database's objects at the end.
struct Role {
    database: Database,
    name: String,
    repo: PostgresRepo,
}

impl Role {
    async fn with(grant: &str) -> Self {
        let (database, _) = Database::migrated().await;
        let name = format!("role_of_{}", database.name);
        database.run(&format!("CREATE ROLE {name} LOGIN PASSWORD 'pod'"));
        assert_eq!(grant.matches("TO service;").count(), 1, "{grant}");
        database.run(&grant.replace("TO service", &format!("TO {name}")));
        let (_, place) = database.url.rsplit_once('@').unwrap();
        let url = format!("postgres://{name}:pod@{place}");
        let repo = PostgresRepo::connect(&url).await.unwrap();
        Self { database, name, repo }
    }

    /// Everything that a pod does and an operator may do without deleting.
    async fn lives(&self) {
        let (repo, held) = (&self.repo, claim("job"));
        repo.check_schema().await.unwrap();
        repo.migrate().await.expect("it only looks when nothing is missing");
        assert!(matches!(repo.acquire(&held).await, Ok(Acquire::Granted(_))));
        assert!(matches!(repo.acquire(&claim("job")).await, Ok(Acquire::Busy(Some(_)))));
        assert!(matches!(repo.renew(&held).await, Ok(Renew::Renewed)));
        assert!(matches!(
            repo.renew_all(std::slice::from_ref(&held)).await[..],
            [Ok(Renew::Renewed)]
        ));
        assert!(matches!(repo.release(&held).await, Ok(Release::Released)));
        let telling = repo.clone().notify(true);
        assert!(matches!(telling.acquire(&held).await, Ok(Acquire::Granted(_))));
        let (by, why) = (Label::new("ops").unwrap(), "why".parse::<Note>().unwrap());
        assert!(matches!(
            repo.evict(&held.name, &by, &why).await,
            Ok(Evict::Evicted { .. })
        ));
        assert!(matches!(
            repo.evict_now(&held.name, &by, &why).await,
            Ok(Evict::Evicted { .. })
        ));
        repo.pause(&held.name, Duration::from_secs(60), &by, &why)
            .await
            .unwrap();
        assert!(matches!(telling.resume(&held.name).await, Ok(Release::Released)));
        assert_eq!(repo.list().await.unwrap().len(), 1);
    }

    fn leaves(self) {
        let Self { database, name, repo } = self;
        drop(repo);
        database.run(&format!("DROP OWNED BY {name} CASCADE; DROP ROLE {name}"));
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_pod_with_the_grants_of_the_page_can_do_all_but_delete() {
    let role = Role::with(statements()[0]).await;
    role.lives().await;
    role.database.age(Duration::from_secs(3_600));
    let refused = role.repo.purge(Duration::ZERO).await.unwrap_err();
    assert_eq!(refused.kind(), RepoErrorKind::Denied, "{}", chain(&refused));
    // Nor can it make a table, or read another's.
    role.database.run("CREATE TABLE theirs (secret text)");
    let sql = format!("SET ROLE {}; SELECT * FROM theirs", role.name);
    assert!(role.database.sql().await.batch_execute(&sql).await.is_err());
    role.database.run("DROP TABLE task_leases");
    let refused = role.repo.migrate().await.unwrap_err();
    assert_eq!(refused.kind(), RepoErrorKind::Denied, "{}", chain(&refused));
    role.leaves();
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn an_operator_with_the_grants_of_the_page_can_purge_too() {
    let role = Role::with(statements()[1]).await;
    role.lives().await;
    role.database.age(Duration::from_secs(3_600));
    assert_eq!(role.repo.purge(Duration::ZERO).await.unwrap(), 1);
    role.leaves();
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn who_may_only_look_can_change_nothing() {
    let role = Role::with(statements()[2]).await;
    let held = claim("job");
    let owner = role.database.repo().await;
    assert!(matches!(owner.acquire(&held).await, Ok(Acquire::Granted(_))));
    let before = role.database.row(&held.name).await;
    assert_eq!(role.repo.list().await.unwrap().len(), 1);
    assert!(role.repo.get(&held.name).await.unwrap().is_some());
    let (by, why) = (Label::new("ops").unwrap(), "why".parse::<Note>().unwrap());
    let refused = [
        role.repo.acquire(&claim("other")).await.map(drop).unwrap_err(),
        role.repo.renew(&held).await.map(drop).unwrap_err(),
        role.repo.release(&held).await.map(drop).unwrap_err(),
        role.repo.evict(&held.name, &by, &why).await.map(drop).unwrap_err(),
        role.repo.evict_now(&held.name, &by, &why).await.map(drop).unwrap_err(),
        role.repo
            .pause(&held.name, Duration::from_secs(60), &by, &why)
            .await
            .unwrap_err(),
        role.repo.resume(&held.name).await.map(drop).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), RepoErrorKind::Denied, "{}", chain(&error));
    }
    assert_eq!(role.database.row(&held.name).await, before);
    role.leaves();
}

/// Of the three rights, each is needed.
#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn without_any_one_of_the_grants_a_pod_is_denied() {
    for right in ["SELECT", "INSERT", "UPDATE"] {
        let role = Role::with(statements()[0]).await;
        role.database
            .run(&format!("REVOKE {right} ON task_leases FROM {}", role.name));
        let error = role.repo.acquire(&claim("job")).await.unwrap_err();
        assert_eq!(error.kind(), RepoErrorKind::Denied, "{right}: {}", chain(&error));
        role.leaves();
    }
}

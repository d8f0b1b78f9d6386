//! The grants of SECURITY.md: a user with exactly these can do what the page says, and no more.

use std::time::Duration;

use lease_core::{Acquire, Evict, Inspect, Label, Note, Release, Renew, Repo, RepoErrorKind};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::Dialect;

use crate::support::{Database, chain, claim, on_both};

on_both!(
    a_pod_with_the_grants_of_the_page_can_do_all_but_delete,
    an_operator_with_the_grants_of_the_page_can_purge_too,
    who_may_only_look_can_change_nothing,
    without_any_one_of_the_grants_a_pod_is_denied,
);

const PAGE: &str = include_str!("../../../SECURITY.md");

/// The page's statements for these engines: for pods, operators, and those who only look.
fn statements() -> [&'static str; 3] {
    let section = PAGE.split_once("### MySQL and MariaDB\n").unwrap().1;
    let section = section.split("\n### ").next().unwrap();
    let blocks = section.split("```sql\n").skip(1);
    let blocks: Vec<&str> = blocks.map(|block| block.split("```").next().unwrap()).collect();
    blocks.try_into().unwrap()
}

/// A user of its own with these rights, and its repo.
struct User {
    database: Database,
    name: String,
    repo: MysqlRepo,
}

impl User {
    async fn with(dialect: Dialect, rights: &str) -> Self {
        let (database, _) = Database::migrated(dialect).await;
        // At most 32 bytes.
        let name = database.name()[..32.min(database.name().len())].to_owned();
        database.run(&format!("CREATE USER {name} IDENTIFIED BY 'pod'"));
        assert_eq!(rights.matches("TO service;").count(), 1, "{rights}");
        database.run(&rights.replace("TO service", &format!("TO {name}")));
        let (_, place) = database.url.split_once('@').unwrap();
        let repo = MysqlRepo::connect(&format!("mysql://{name}:pod@{place}"))
            .await
            .unwrap();
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
        let again = claim("job");
        assert!(matches!(repo.acquire(&again).await, Ok(Acquire::Granted(_))));
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
        assert!(matches!(repo.resume(&held.name).await, Ok(Release::Released)));
        assert_eq!(repo.list().await.unwrap().len(), 1);
    }

    fn leaves(self) {
        let Self { database, name, repo } = self;
        drop(repo);
        database.run(&format!("DROP USER {name}"));
    }
}

async fn a_pod_with_the_grants_of_the_page_can_do_all_but_delete(dialect: Dialect) {
    let user = User::with(dialect, statements()[0]).await;
    user.lives().await;
    user.database.age(Duration::from_secs(3_600));
    let refused = user.repo.purge(Duration::ZERO).await.unwrap_err();
    assert_eq!(refused.kind(), RepoErrorKind::Denied, "{}", chain(&refused));
    user.database.run("DROP TABLE task_leases");
    let refused = user.repo.migrate().await.unwrap_err();
    assert_eq!(refused.kind(), RepoErrorKind::Denied, "{}", chain(&refused));
    user.leaves();
}

async fn an_operator_with_the_grants_of_the_page_can_purge_too(dialect: Dialect) {
    let user = User::with(dialect, statements()[1]).await;
    user.lives().await;
    user.database.age(Duration::from_secs(3_600));
    assert_eq!(user.repo.purge(Duration::ZERO).await.unwrap(), 1);
    user.leaves();
}

async fn who_may_only_look_can_change_nothing(dialect: Dialect) {
    let user = User::with(dialect, statements()[2]).await;
    let held = claim("job");
    let owner = user.database.repo().await;
    assert!(matches!(owner.acquire(&held).await, Ok(Acquire::Granted(_))));
    let before = user.database.row(&held.name);
    assert_eq!(user.repo.list().await.unwrap().len(), 1);
    assert!(user.repo.get(&held.name).await.unwrap().is_some());
    let (by, why) = (Label::new("ops").unwrap(), "why".parse::<Note>().unwrap());
    let refused = [
        user.repo.acquire(&claim("other")).await.map(drop).unwrap_err(),
        user.repo.renew(&held).await.map(drop).unwrap_err(),
        user.repo.release(&held).await.map(drop).unwrap_err(),
        user.repo.evict(&held.name, &by, &why).await.map(drop).unwrap_err(),
        user.repo.evict_now(&held.name, &by, &why).await.map(drop).unwrap_err(),
        user.repo
            .pause(&held.name, Duration::from_secs(60), &by, &why)
            .await
            .unwrap_err(),
        user.repo.resume(&held.name).await.map(drop).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), RepoErrorKind::Denied, "{}", chain(&error));
    }
    assert_eq!(user.database.row(&held.name), before);
    user.leaves();
}

/// Of the three rights, each is needed.
async fn without_any_one_of_the_grants_a_pod_is_denied(dialect: Dialect) {
    for right in ["SELECT", "INSERT", "UPDATE"] {
        let rights: Vec<&str> = ["SELECT", "INSERT", "UPDATE"]
            .into_iter()
            .filter(|one| *one != right)
            .collect();
        let user = User::with(
            dialect,
            &format!("GRANT {} ON task_leases TO service;", rights.join(", ")),
        )
        .await;
        let held = claim("job");
        let error = match user.repo.acquire(&held).await {
            // A row that is there is not inserted.
            Ok(_) => user.repo.renew(&held).await.map(drop).unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.kind(), RepoErrorKind::Denied, "{right}: {}", chain(&error));
        user.leaves();
    }
}

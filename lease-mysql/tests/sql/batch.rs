//! Many renewals in one statement: each gets its answer, no lock is waited for, none is left.

use std::time::Duration;

use futures_util::future::join_all;
use lease_core::{Acquire, Claim, Inspect, Label, Loss, Note, Release, Renew, Repo, RepoErrorKind};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::Dialect;
use mysql_async::prelude::Queryable;

use crate::support::{AS_IT_IS, Database, chain, claim, name, on_both, opts, pool};

on_both!(
    a_thousand_renewals_get_an_answer_each_in_their_order,
    rows_that_others_have_locked_are_passed_over_without_a_wait,
    a_batch_changes_the_rows_of_its_claims_alone,
    on_a_pool_of_the_applications_a_batch_is_committed_and_nothing_stays_open,
    a_batch_that_the_server_refuses_is_an_error_for_each,
);

const S: Duration = Duration::from_secs(1);

async fn acquired(repo: &MysqlRepo, claims: &[Claim]) {
    for some in claims.chunks(50) {
        for answer in join_all(some.iter().map(|claim| repo.acquire(claim))).await {
            assert!(matches!(answer.unwrap(), Acquire::Granted(_)));
        }
    }
}

/// Also in a table of another name.
async fn a_thousand_renewals_get_an_answer_each_in_their_order(dialect: Dialect) {
    let database = Database::for_table(dialect, "Task `Leases'");
    let repo = database.repo().await.connections(8).unwrap();
    repo.migrate().await.unwrap();
    assert_eq!(repo.batch_size(), 1_000);
    // As long as names can be, some with what ends a text in JSON or SQL, and of ttls of their own.
    let mut claims: Vec<Claim> = (0..1_000)
        .map(|n| {
            let mut claim = claim(&format!("{n:04}\"],['\\{}", "é".repeat(59)));
            claim.ttl = S * (100 + n);
            claim.limit = S * 20;
            claim
        })
        .collect();
    acquired(&repo, &claims).await;
    database.age(S * 50);

    // Every seventh is another case.
    let (by, why) = (Label::new("ops").unwrap(), Note::new("a test").unwrap());
    let mut wanted: Vec<&str> = vec!["Renewed"; 1_000];
    for (at, case) in ["Gone", "Taken", "Expired", "Released", "Evicted"]
        .into_iter()
        .enumerate()
    {
        for nth in 0..28 {
            let n = (at + nth * 5) * 7;
            wanted[n] = case;
            let claim = &mut claims[n];
            match case {
                "Gone" => claim.name = name(&format!("gone {n}")),
                "Taken" => *claim = crate::support::claim(claim.name.as_str()),
                "Expired" => {
                    let text = claim.name.as_str().as_bytes().iter().map(|byte| format!("{byte:02x}"));
                    database.expire(&text.collect::<String>());
                }
                "Released" => {
                    claim.at_least_for = S * 1_000;
                    assert_eq!(repo.release(claim).await.unwrap(), Release::Released);
                }
                _ => drop(repo.evict(&claim.name, &by, &why).await.unwrap()),
            }
        }
    }
    let answers = repo.renew_all(&claims).await;
    let got = |answer: &Result<Renew, _>| match answer {
        Ok(Renew::Renewed) => "Renewed",
        Ok(Renew::Lost(Loss::Gone)) => "Gone",
        Ok(Renew::Lost(Loss::Taken(_))) => "Taken",
        Ok(Renew::Lost(Loss::Expired)) => "Expired",
        Ok(Renew::Lost(Loss::Released)) => "Released",
        Ok(Renew::Lost(Loss::Evicted { .. })) => "Evicted",
        other => panic!("{other:?}"),
    };
    assert_eq!(answers.iter().map(got).collect::<Vec<_>>(), wanted);
    for (n, _) in wanted
        .iter()
        .enumerate()
        .filter(|(_, case)| **case == "Renewed")
        .step_by(97)
    {
        let row = repo.get(&claims[n].name).await.unwrap().unwrap();
        let left = row.expires_in().unwrap();
        assert!(left > claims[n].ttl - S * 30 && left <= claims[n].ttl, "{n}: {left:?}");
    }
    // One that already lives longer stays as it is.
    let mut held: Vec<Claim> = claims
        .into_iter()
        .zip(wanted)
        .filter(|(_, case)| *case == "Renewed")
        .map(|(c, _)| c)
        .collect();
    held[0].ttl = S;
    assert!(
        repo.renew_all(&held)
            .await
            .iter()
            .all(|answer| matches!(answer, Ok(Renew::Renewed)))
    );
    let row = repo.get(&held[0].name).await.unwrap().unwrap();
    assert!(row.expires_in().unwrap() > S * 50, "a renewal never shortens");
}

async fn rows_that_others_have_locked_are_passed_over_without_a_wait(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let claims: Vec<Claim> = ["a", "b", "c"].into_iter().map(claim).collect();
    acquired(&repo, &claims).await;
    acquired(&repo, &[claim("of somebody else")]).await;
    let before = database.row(&name("b"));
    let mut locker = database.sql().await;
    locker
        .query_drop("BEGIN; SELECT * FROM task_leases WHERE name IN ('b', 'of somebody else') FOR UPDATE")
        .await
        .unwrap();
    // Within its limit, which is shorter than any wait for a lock can be made on MySQL; and so for a name that is locked and not there.
    let mut asked = claims.clone();
    asked.push(claim("nobody's"));
    for claim in &mut asked {
        claim.limit = S * 4;
    }
    for _ in 0..3 {
        let answers = repo.renew_all(&asked).await;
        assert!(matches!(answers[0], Ok(Renew::Renewed)), "{answers:?}");
        assert_eq!(
            answers[1].as_ref().unwrap_err().kind(),
            RepoErrorKind::Conflict,
            "{answers:?}"
        );
        assert!(chain(answers[1].as_ref().unwrap_err()).contains("the row is locked"));
        assert!(matches!(answers[2], Ok(Renew::Renewed)), "{answers:?}");
        assert!(matches!(answers[3], Ok(Renew::Lost(Loss::Gone))), "{answers:?}");
    }
    assert_eq!(database.row(&name("b")), before);
    locker.query_drop("ROLLBACK").await.unwrap();
    let answers = repo.renew_all(&claims).await;
    assert!(
        answers.iter().all(|answer| matches!(answer, Ok(Renew::Renewed))),
        "{answers:?}"
    );
}

/// C1.
async fn a_batch_changes_the_rows_of_its_claims_alone(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let (ours, theirs) = (claim("job"), claim("job 2"));
    acquired(&repo, &[ours.clone(), theirs.clone()]).await;
    let stale = claim("job 2");
    database.age(S * 5);
    let before = (database.row(&ours.name), database.row(&theirs.name));
    let answers = repo.renew_all(&[ours.clone(), stale]).await;
    assert!(matches!(answers[0], Ok(Renew::Renewed)), "{answers:?}");
    assert!(matches!(answers[1], Ok(Renew::Lost(Loss::Taken(_)))), "{answers:?}");
    assert_eq!(database.row(&theirs.name), before.1);
    assert_ne!(database.row(&ours.name), before.0);
}

async fn on_a_pool_of_the_applications_a_batch_is_committed_and_nothing_stays_open(dialect: Dialect) {
    for setup in [
        AS_IT_IS,
        "SET autocommit = 0",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    ] {
        let database = Database::empty(dialect);
        let pool = pool(&database.url, 1, setup);
        let repo = MysqlRepo::new(pool).unwrap();
        repo.migrate().await.unwrap();
        let claims: Vec<Claim> = ["a", "b"].into_iter().map(claim).collect();
        acquired(&repo, &claims).await;
        database.age(S * 5);
        let mut locker = database.sql().await;
        locker
            .query_drop("BEGIN; SELECT * FROM task_leases WHERE name = 'b' FOR UPDATE")
            .await
            .unwrap();
        let answers = repo.renew_all(&claims).await;
        assert!(matches!(answers[0], Ok(Renew::Renewed)), "{setup}: {answers:?}");
        assert_eq!(
            answers[1].as_ref().unwrap_err().kind(),
            RepoErrorKind::Conflict,
            "{setup}: {answers:?}"
        );
        locker.query_drop("ROLLBACK").await.unwrap();
        // Whoever looks sees it, and has the row at once.
        let mut other = mysql_async::Conn::new(opts(&database.url)).await.unwrap();
        let text = "SELECT CAST(expires_at > UTC_TIMESTAMP(6) + INTERVAL 27 SECOND AS SIGNED) FROM task_leases WHERE name = 'a' FOR UPDATE NOWAIT";
        let renewed: Option<i64> = other.query_first(text).await.unwrap();
        assert_eq!(renewed, Some(1), "{setup}");
    }
}

async fn a_batch_that_the_server_refuses_is_an_error_for_each(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let claims: Vec<Claim> = ["a", "b"].into_iter().map(claim).collect();
    acquired(&repo, &claims).await;
    database.run("RENAME TABLE task_leases TO elsewhere");
    for answer in repo.renew_all(&claims).await {
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), RepoErrorKind::SchemaMissing, "{error}");
        assert!(!error.may_have_executed());
    }
    database.run("RENAME TABLE elsewhere TO task_leases");
    let answers = repo.renew_all(&claims).await;
    assert!(
        answers.iter().all(|answer| matches!(answer, Ok(Renew::Renewed))),
        "{answers:?}"
    );
    assert!(repo.renew_all(&[]).await.is_empty());
}

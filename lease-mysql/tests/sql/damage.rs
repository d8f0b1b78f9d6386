//! Rows that nobody of ours writes: an answer or a typed error for each operation, never a panic, never two holders; and it works
//! again once the row is gone, on the same connections.

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use lease_core::{Acquire, Claim, Inspect, Label, Note, Repo, RepoError, RepoErrorKind};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::Dialect;

use crate::support::{Database, chain, claim, on_both};

on_both!(
    a_damaged_row_is_answered_or_an_error_and_never_a_panic,
    a_row_whose_name_is_none_is_listed_and_in_nobodys_way,
);

/// The damaged values of a row, each beside sound ones.
const VALUES: &[(&str, &[&str])] = &[
    (
        "holder",
        &[
            "''",
            "x'ff00fe'",
            "'/'",
            "'evict/'",
            "'pause/'",
            "x'70617573652fff'",
            "x'1b5b324a'",
            "REPEAT('h', 128)",
        ],
    ),
    ("token", &["-9223372036854775808", "-1", "0", "9223372036854775807"]),
    (
        "acquired_at",
        &["'0000-00-00 00:00:00'", "'1000-01-01'", "'9999-12-31 23:59:59.999999'"],
    ),
    (
        "expires_at",
        &["'0000-00-00 00:00:00'", "'1000-01-01'", "'9999-12-31 23:59:59.999999'"],
    ),
    (
        "released_at",
        &["'0000-00-00 00:00:00'", "'2024-00-31'", "'9999-12-31 23:59:59.999999'"],
    ),
    ("note", &["''", "x'c0'", "REPEAT('n', 255)"]),
];

/// Lets a session write dates that are none.
const LAX: &str = "SET SESSION sql_mode = ''";

/// An answer, or an error that leaves the connection in order.
#[track_caller]
fn fine<T: Debug>(what: &str, answer: Result<T, RepoError>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(error) => {
            let text = chain(&error);
            assert!(error.kind() != RepoErrorKind::Unavailable, "{what}: {text}");
            assert!(!text.contains("panic"), "{what}: {text}");
            None
        }
    }
}

async fn suffer(repo: &MysqlRepo, held: &Claim, what: &str) {
    let (by, why) = (Label::new("ops").unwrap(), Note::new("why").unwrap());
    let other = claim("job");
    let mine = fine(what, repo.acquire(held).await);
    let theirs = fine(what, repo.acquire(&other).await);
    let granted = |answer: &Option<Acquire>| matches!(answer, Some(Acquire::Granted(_)));
    assert!(!(granted(&mine) && granted(&theirs)), "{what}: two holders");
    fine(what, repo.renew(held).await);
    for answer in repo.renew_all(&[held.clone(), claim("another")]).await {
        fine(what, answer);
    }
    for row in fine(what, repo.list().await).unwrap_or_default() {
        let _ = (format!("{row:?}"), row.expires_in(), row.is_live());
        for time in [Some(row.acquired_at), Some(row.expires_at), row.released_at]
            .into_iter()
            .flatten()
        {
            let _ = (time.to_string(), SystemTime::from(time));
        }
    }
    fine(what, repo.get(&held.name).await);
    fine(what, repo.evict(&held.name, &by, &why).await);
    fine(what, repo.pause(&held.name, Duration::MAX, &by, &why).await);
    fine(what, repo.resume(&held.name).await);
    fine(what, repo.evict_now(&held.name, &by, &why).await);
    fine(what, repo.release(&held.clone().at_least_for(Duration::MAX)).await);
    fine(what, repo.purge(Duration::ZERO).await);
    fine(what, repo.purge(Duration::MAX).await);
    fine(what, repo.check_schema().await);
}

async fn a_damaged_row_is_answered_or_an_error_and_never_a_panic(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    let held = claim("job");
    for (column, values) in VALUES {
        for value in *values {
            let what = format!("{column} = {value}");
            let sound = "REPLACE INTO task_leases (name, holder, token, acquired_at, expires_at) \
                         VALUES ('job', 'pod-x/0', 7, '2001-01-01', '2001-01-01')";
            // Both as a row that is free, and as one that is ours and live.
            for held_row in [false, true] {
                database.run(sound);
                if held_row {
                    assert!(matches!(repo.acquire(&held).await, Ok(Acquire::Granted(_))), "{what}");
                }
                database.run(&format!("{LAX}; UPDATE task_leases SET {column} = {value}"));
                suffer(&repo, &held, &what).await;
                database.run("DELETE FROM task_leases");
                assert!(
                    matches!(repo.acquire(&held).await, Ok(Acquire::Granted(_))),
                    "after {what}"
                );
            }
        }
    }
}

/// Names that no `LeaseName` can be: they are shown, and in nobody's way.
async fn a_row_whose_name_is_none_is_listed_and_in_nobodys_way(dialect: Dialect) {
    let (database, repo) = Database::migrated(dialect).await;
    database.run(
        "INSERT INTO task_leases (name, holder, token, acquired_at, expires_at) VALUES
         ('', 'x/0', 1, '2001-01-01', '2001-01-01'), (' job ', 'x/0', 1, '2001-01-01', '2001-01-01'),
         (x'610a', 'x/0', 1, '2001-01-01', '2001-01-01'), (x'ff', 'x/0', 1, '2001-01-01', '2001-01-01'),
         (x'00', 'x/0', 1, '2001-01-01', '2001-01-01')",
    );
    assert_eq!(repo.list().await.unwrap().len(), 5);
    assert!(matches!(repo.acquire(&claim("job")).await, Ok(Acquire::Granted(_))));
    fine("purge", repo.purge(Duration::ZERO).await);
    assert!(
        repo.get(&claim("job").name).await.unwrap().is_some(),
        "what is held is not purged"
    );
}

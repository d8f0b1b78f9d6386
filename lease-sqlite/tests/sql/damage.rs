//! Rows that nobody of ours writes: an answer or a typed error for each operation, never a panic, never two holders; and it works
//! again once the row is gone.

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use lease_sqlite::SqliteRepo;
use lease_sqlite::lease_core::{Acquire, Claim, Inspect, Label, Note, Operation, Repo, RepoError, RepoErrorKind};

use crate::support::{Database, chain, claim};

/// The damaged values of a row, each beside sound ones.
const VALUES: &[(&str, &[&str])] = &[
    (
        "holder",
        &[
            "''",
            "CAST(x'ff00fe' AS TEXT)",
            "CAST(zeroblob(100000) AS TEXT)",
            "'/'",
            "'evict/'",
            "'pause/'",
            "'pause/' || CAST(x'ff' AS TEXT)",
            "char(27) || '[2J'",
        ],
    ),
    ("token", &["-9223372036854775808", "-1", "0", "9223372036854775807"]),
    ("acquired_at", &["-9223372036854775808", "0", "9223372036854775807"]),
    ("expires_at", &["-9223372036854775808", "0", "9223372036854775807"]),
    ("released_at", &["-9223372036854775808", "0", "9223372036854775807"]),
    ("note", &["''", "CAST(x'c0' AS TEXT)", "CAST(zeroblob(100000) AS TEXT)"]),
];

/// What a table without STRICT takes as well.
const UNTYPED: &[(&str, &[&str])] = &[
    ("holder", &["x'ff'", "7", "1e999"]),
    ("token", &["'many'", "x'ff'", "1.5", "1e999"]),
    ("acquired_at", &["'then'", "x'ff'", "1e999"]),
    ("expires_at", &["'soon'", "x'ff'", "-1e999"]),
    ("released_at", &["'now'", "x'ff'"]),
    ("note", &["x'ff'", "7"]),
];

/// An answer, or an error that is no panic's.
#[track_caller]
fn fine<T: Debug>(what: &str, answer: Result<T, RepoError>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(error) => {
            let text = chain(&error);
            assert!(error.operation() != Operation::Connect, "{what}: {text}");
            assert!(error.kind() != RepoErrorKind::Unavailable, "{what}: {text}");
            assert!(!text.contains("panic"), "{what}: {text}");
            None
        }
    }
}

async fn suffer(repo: &SqliteRepo, held: &Claim, what: &str) {
    let (by, why) = (Label::new("ops").unwrap(), Note::new("why").unwrap());
    let other = claim("job");
    let mine = fine(what, repo.acquire(held).await);
    let theirs = fine(what, repo.acquire(&other).await);
    let granted = |answer: &Option<Acquire>| matches!(answer, Some(Acquire::Granted(_)));
    assert!(!(granted(&mine) && granted(&theirs)), "{what}: two holders");
    fine(what, repo.renew(held).await);
    for answer in repo.renew_all(&[held.clone(), other.clone()]).await {
        // Two claims of one name, which nobody of ours makes.
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
    fine(what, repo.diagnose().await);
    fine(what, repo.check_schema().await);
}

async fn suffers(values: &[(&str, &[&str])], strict: bool) {
    let database = Database::migrated().await;
    let repo = database.repo().await;
    if !strict {
        let schema = include_str!("../../src/schema.sql").replace("STRICT", "");
        assert!(!schema.contains("STRICT"));
        database.run(&format!("DROP TABLE task_leases; {schema}"));
    }
    let held = claim("job");
    for (column, values) in values {
        for value in *values {
            let what = format!("{column} = {value}");
            let sound = "INSERT OR REPLACE INTO task_leases (name, holder, token, acquired_at, expires_at) \
                         VALUES ('job', 'pod-x/0', 7, 0, 1)";
            // Both as a row that is free, and as one that is ours and live.
            for held_row in [false, true] {
                database.run(sound);
                if held_row {
                    assert!(matches!(repo.acquire(&held).await, Ok(Acquire::Granted(_))), "{what}");
                }
                database.run(&format!("UPDATE task_leases SET {column} = {value}"));
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

#[tokio::test]
async fn a_damaged_row_is_answered_or_an_error_and_never_a_panic() {
    suffers(VALUES, true).await;
}

#[tokio::test]
async fn a_row_of_other_types_is_answered_or_an_error_and_never_a_panic() {
    suffers(UNTYPED, false).await;
}

/// Names that no `LeaseName` can be: they are shown, and in nobody's way.
#[tokio::test]
async fn a_row_whose_name_is_none_is_listed_and_in_nobodys_way() {
    let database = Database::migrated().await;
    let repo = database.repo().await;
    database.run(
        "INSERT INTO task_leases (name, holder, token, acquired_at, expires_at) VALUES
         ('', 'x/0', 1, 0, 1), (' job ', 'x/0', 1, 0, 1), ('a' || char(10), 'x/0', 1, 0, 1), (CAST(x'ff' AS TEXT), 'x/0', 1, 0, 1),
         (CAST(zeroblob(100000) AS TEXT), 'x/0', 1, 0, 1)",
    );
    assert_eq!(repo.list().await.unwrap().len(), 5);
    assert!(matches!(repo.acquire(&claim("job")).await, Ok(Acquire::Granted(_))));
    fine("purge", repo.purge(Duration::ZERO).await);
    assert!(
        repo.get(&claim("job").name).await.unwrap().is_some(),
        "what is held is not purged"
    );
}

//! A table whose shape and rows are nonsense: each operation of `Repo` and of `Inspect` has a typed error or a sensible
//! answer, no two holders are granted it at once, and the next tick after the repair works, on the same connections.

use std::time::Duration;

use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use lease_core::{Acquire, Claim, Holder, Inspect, Label, Note, Release, Renew, Repo, RepoError, RepoErrorKind};
use lease_postgres::PostgresRepo;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tokio::time::timeout;
use tokio_postgres::Client;

use crate::ruin::{Ruin, SANE_ROWS, SANE_TABLE, ruin};
use crate::run::{check, corpus};
use crate::support::{Database, chain, name};

/// Above the bound of each: 5 s of a claim, 10 s of a method of `Inspect`.
const BOUND: Duration = Duration::from_secs(12);

/// A table to damage, and the connection of whoever does.
struct Table {
    sql: Client,
    url: String,
}

impl Table {
    async fn new(database: &Database) -> Self {
        let (sql, url) = (database.sql().await, database.url.clone());
        Self { sql, url }
    }

    async fn make_anew(&self) {
        let drop = "DROP TABLE IF EXISTS task_leases; DROP TABLE IF EXISTS gone;";
        let create = include_str!("../../src/schema.sql");
        self.sql.batch_execute(&format!("{drop}{create}")).await.unwrap();
    }

    /// Does what is possible. Answers how much of it was.
    async fn ruin(&self, ruin: &Ruin) -> usize {
        let mut done = 0;
        for statement in ruin.shape.iter().chain(&ruin.rows) {
            done += usize::from(self.sql.batch_execute(statement).await.is_ok());
        }
        done
    }

    /// Whether somebody other than pod a has a live row, if that can be told.
    async fn is_taken(&self) -> Option<bool> {
        let look = "SELECT COALESCE(bool_or(expires_at > clock_timestamp() AND holder IS DISTINCT FROM 'pod-a/0'), false) \
                    FROM task_leases WHERE name = 'job'";
        let row = self.sql.query_one(look, &[]).await.ok()?;
        row.try_get(0).ok()
    }

    async fn has_token(&self, token: i64) -> bool {
        let look = "SELECT count(*) FROM task_leases WHERE name = 'job' AND token::bigint = $1";
        self.sql.query_one(look, &[&token]).await.unwrap().get::<_, i64>(0) > 0
    }
}

/// Two pods and an operator, on one connection that keeps the statements it has prepared.
struct Users<'a> {
    table: &'a Table,
    repo: PostgresRepo,
    a: Claim,
    b: Claim,
}

impl<'a> Users<'a> {
    fn of(table: &'a Table) -> Self {
        let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new(&table.url);
        let pool = Pool::builder(manager).max_size(1).build().unwrap();
        let claim = |holder| Claim::new(name("job"), Holder::new(holder).unwrap(), Duration::from_secs(30));
        Self {
            table,
            repo: PostgresRepo::new(pool).unwrap(),
            a: claim("pod-a/0"),
            b: claim("pod-b/0"),
        }
    }

    async fn suffer(&self, ruin: &Ruin) -> TestCaseResult {
        let (repo, a, b) = (&self.repo, &self.a, &self.b);
        let unfit = said("check_schema", within(repo.check_schema()).await?, None)?.is_none();
        let unfit = unfit.then_some(SHAPELESS);
        let taken = self.table.is_taken().await;

        let answer_a = said("acquire", within(repo.acquire(a)).await?, unfit)?;
        if let Some(Acquire::Granted(token)) = &answer_a {
            prop_assert!(
                self.table.has_token(token.get()).await,
                "{} is not what stands in the row",
                token
            );
        }
        let granted_a = is_granted(answer_a);
        let granted_b = is_granted(said("acquire", within(repo.acquire(b)).await?, unfit)?);
        prop_assert!(!(granted_a && granted_b), "two holders at once");
        prop_assert!(!(granted_a && taken == Some(true)), "granted over a live row");
        let renewed_a = said("renew", within(repo.renew(a)).await?, unfit)? == Some(Renew::Renewed);
        let renewed_b = said("renew", within(repo.renew(b)).await?, unfit)? == Some(Renew::Renewed);
        prop_assert!(!granted_a || renewed_a, "what was granted can be renewed");
        if renewed_a && renewed_b {
            // Two rows of one name, made by hand: each holder finds its own. A table without a key can't rule that
            // out, and nobody is granted a lease there; `check_schema` says so.
            let why = within(repo.check_schema()).await?.expect_err("two rows of one name");
            prop_assert!(
                chain(&why).contains("no primary key or unique index on name alone"),
                "{}",
                chain(&why)
            );
        }
        self.inspect(unfit).await?;
        self.release(unfit, ruin.rows.len()).await
    }

    async fn inspect(&self, unfit: Unfit) -> TestCaseResult {
        let (repo, job) = (&self.repo, &self.a.name);
        let (by, why) = (Label::new("ops").unwrap(), Note::new("a test").unwrap());
        if let Some(rows) = said("list", within(repo.list()).await?, unfit)? {
            for row in &rows {
                // What an operator's tool does with them.
                let _ = (format!("{row:?}"), row.expires_in(), row.is_live());
                for time in [Some(row.acquired_at), Some(row.expires_at), row.released_at]
                    .into_iter()
                    .flatten()
                {
                    let _ = (time.to_string(), std::time::SystemTime::from(time));
                }
            }
            let row = said("get", within(repo.get(job)).await?, unfit)?.flatten();
            prop_assert_eq!(row.is_some(), rows.iter().any(|row| row.name == "job"));
        }
        said("evict", within(repo.evict(job, &by, &why)).await?, unfit)?;
        let hour = Duration::from_secs(3_600);
        let paused = said("pause", within(repo.pause(job, hour, &by, &why)).await?, unfit)?.is_some();
        if paused {
            let granted = is_granted(said("acquire", within(repo.acquire(&self.a)).await?, unfit)?);
            prop_assert!(!granted, "granted while it is paused");
        }
        said("pause", within(repo.pause(job, Duration::MAX, &by, &why)).await?, unfit)?;
        said("resume", within(repo.resume(job)).await?, unfit)?;
        said("purge", within(repo.purge(Duration::ZERO)).await?, unfit)?;
        said("evict_now", within(repo.evict_now(job, &by, &why)).await?, unfit)?;
        Ok(())
    }

    async fn release(&self, unfit: Unfit, minimum: usize) -> TestCaseResult {
        let granted = is_granted(said("acquire", within(self.repo.acquire(&self.b)).await?, unfit)?);
        let minimum = [Duration::ZERO, Duration::from_secs(1), Duration::MAX][minimum % 3];
        let claim = self.b.clone().at_least_for(minimum);
        let released = said("release", within(self.repo.release(&claim)).await?, unfit)?;
        prop_assert!(!granted || released == Some(Release::Released));
        said(
            "release",
            within(self.repo.clone().delete_on_release(true).release(&self.a)).await?,
            unfit,
        )?;
        Ok(())
    }

    /// What an operator would do, in place: connections keep what they have prepared.
    async fn recover(&self, ruin: &Ruin) -> TestCaseResult {
        self.table
            .sql
            .batch_execute(if ruin.shape.is_empty() { SANE_ROWS } else { SANE_TABLE })
            .await
            .unwrap();
        let mended = within(self.repo.check_schema()).await?;
        prop_assert!(mended.is_ok(), "{}", chain(&mended.unwrap_err()));
        for method in [
            within(self.repo.list()).await?.err(),
            within(self.repo.get(&self.a.name)).await?.err(),
        ] {
            prop_assert!(method.is_none(), "{}", chain(&method.unwrap()));
        }
        let mut last = 0;
        for claim in [&self.a, &self.b] {
            match within(self.repo.acquire(claim)).await? {
                Ok(Acquire::Granted(token)) => {
                    prop_assert!(token.get() > last, "{} after {}", token, last);
                    last = token.get();
                }
                Ok(busy) => prop_assert!(false, "{:?}", busy),
                Err(error) => prop_assert!(false, "{}", chain(&error)),
            }
            prop_assert_eq!(within(self.repo.renew(claim)).await?.unwrap(), Renew::Renewed);
            let release = if last % 2 == 0 {
                &self.repo
            } else {
                &self.repo.clone().delete_on_release(true)
            };
            prop_assert_eq!(within(release.release(claim)).await?.unwrap(), Release::Released);
        }
        Ok(())
    }
}

/// The kinds that an error must be of when the table's shape is wrong.
type Unfit = Option<&'static [RepoErrorKind]>;

const SHAPELESS: &[RepoErrorKind] = &[RepoErrorKind::SchemaMismatch, RepoErrorKind::SchemaMissing];

async fn within<T>(call: impl Future<Output = T>) -> Result<T, TestCaseError> {
    timeout(BOUND, call)
        .await
        .map_err(|_| TestCaseError::fail("it exceeds its bound"))
}

/// The answer, or nothing after an error that says what is wrong.
fn said<T>(call: &str, answer: Result<T, RepoError>, unfit: Unfit) -> Result<Option<T>, TestCaseError> {
    let error = match answer {
        Ok(answer) => return Ok(Some(answer)),
        Err(error) => error,
    };
    let text = chain(&error);
    prop_assert!(
        std::error::Error::source(&error).is_some(),
        "{} without a cause: {}",
        call,
        text
    );
    match unfit {
        Some(kinds) => prop_assert!(kinds.contains(&error.kind()), "{}: {}", call, text),
        None => {
            let known = matches!(
                error.kind(),
                RepoErrorKind::Other | RepoErrorKind::SchemaMismatch | RepoErrorKind::SchemaMissing
            );
            prop_assert!(known, "{}: {}", call, text);
        }
    }
    Ok(None)
}

fn is_granted(answer: Option<Acquire>) -> bool {
    matches!(answer, Some(Acquire::Granted(_)))
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_damaged_table_gives_typed_errors_and_no_two_holders_and_works_once_it_is_repaired() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let within = runtime.enter();
    let database = Database::empty();
    let table = runtime.block_on(Table::new(&database));
    // Who came when all was well, and prepared its statements then; others come to a table that is ruined already.
    let old = Users::of(&table);
    let live_through = |ruin: &Ruin, all: bool, users: &Users<'_>| {
        runtime.block_on(async {
            table.make_anew().await;
            let done = table.ruin(ruin).await;
            prop_assert!(
                !all || done == ruin.shape.len() + ruin.rows.len(),
                "not all was possible"
            );
            users.suffer(ruin).await?;
            users.recover(ruin).await
        })
    };
    for seed in corpus("tests/properties/corpus/damage") {
        let (shape, rows) = seed.lines.iter().cloned().partition(|line| line.starts_with("ALTER"));
        let ruin = Ruin { shape, rows };
        for (when, users) in [("before", &old), ("after", &Users::of(&table))] {
            live_through(&ruin, true, users)
                .unwrap_or_else(|failure| panic!("{}, connected {when}: {failure}", seed.file));
        }
    }
    check(
        "tests/properties/proptest-regressions/damage.txt",
        25,
        &(ruin(), any::<bool>()),
        |(ruin, comes_before)| {
            let new = Users::of(&table);
            live_through(&ruin, false, if comes_before { &old } else { &new })
        },
    );
    drop(within);
}

//! `measure statements`: what each operation costs the server, by its own counters.

use std::time::Duration;

use lease_core::{Acquire, Claim, Label, LeaseName, Release, Renew, Repo};
use lease_postgres::PostgresRepo;
use serde_json::json;

use super::database::{Measured, Onlooker};
use crate::report::Report;

const TTL: Duration = Duration::from_secs(60);

/// What the measurement can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often each operation is run.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(10..))]
    times: u32,
}

/// The verb.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let measured = Measured::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(measure(measured.database.url(), args.times))
}

async fn measure(url: &str, times: u32) -> anyhow::Result<Report> {
    let repo = PostgresRepo::connect(url).await?;
    repo.migrate().await?;
    let onlooker = Onlooker::connect(url).await?;
    onlooker
        .batch_execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        .await?;
    let mut bench = Bench {
        repo,
        onlooker,
        times,
        report: Report::new(&["operation", "times", "statements", "wal_bytes", "xids"]),
    };
    bench.pairs().await?;
    bench.losers().await?;
    bench.renewals().await?;
    Ok(bench.report)
}

struct Bench {
    repo: PostgresRepo,
    onlooker: Onlooker,
    times: u32,
    report: Report,
}

/// The server's counters between two looks.
struct Cost {
    statements: i64,
    wal_bytes: i64,
    xids: i64,
}

impl Bench {
    /// Wins and releases, one after the other on rows of their own.
    async fn pairs(&mut self) -> anyhow::Result<()> {
        let claims: Vec<Claim> = (0..self.times)
            .map(|number| claim(&format!("pair-{number}"), "pod"))
            .collect();
        let before = self.start().await?;
        for claim in &claims {
            anyhow::ensure!(
                matches!(self.repo.acquire(claim).await?, Acquire::Granted(_)),
                "nobody else is here"
            );
        }
        let cost = self.cost(before).await?;
        self.line("win, new row", &cost, Some(1));
        let before = self.start().await?;
        for claim in &claims {
            anyhow::ensure!(self.repo.release(claim).await? == Release::Released, "it was ours");
        }
        let cost = self.cost(before).await?;
        self.line("release", &cost, Some(1));
        let before = self.start().await?;
        for claim in &claims {
            let next = self::claim(claim.name.as_str(), "next");
            anyhow::ensure!(
                matches!(self.repo.acquire(&next).await?, Acquire::Granted(_)),
                "it was free"
            );
        }
        let cost = self.cost(before).await?;
        self.line("win, free row", &cost, Some(1));
        Ok(())
    }

    /// Losers must only read: no write-ahead log, no transaction id, no row lock, and no wait for anybody's.
    async fn losers(&mut self) -> anyhow::Result<()> {
        let held = claim("held", "winner");
        self.repo.acquire(&held).await?;
        let row = "SELECT xmax::text::bigint FROM task_leases WHERE name = 'held'";
        let xmax = self.onlooker.number(row).await?;
        let before = self.start().await?;
        for _ in 0..self.times {
            let lost = self.repo.acquire(&claim("held", "loser")).await?;
            anyhow::ensure!(matches!(lost, Acquire::Busy(Some(_))), "the winner has it");
        }
        let cost = self.cost(before).await?;
        self.line("lose", &cost, Some(1));
        if cost.wal_bytes != 0 || cost.xids != 0 {
            self.report.miss("a lost acquire wrote something");
        }
        let locked = self.onlooker.number(row).await? != xmax;
        self.report.fact("row_lock_by_losers", locked);
        if locked {
            self.report.miss("a lost acquire left a lock in the row");
        }
        self.onlooker
            .batch_execute("BEGIN; SELECT FROM task_leases WHERE name = 'held' FOR UPDATE")
            .await?;
        let beside = self
            .repo
            .acquire(&claim("held", "loser").limit(Duration::from_secs(2)))
            .await;
        self.onlooker.batch_execute("ROLLBACK").await?;
        self.report.fact(
            "loses_beside_a_locked_row",
            matches!(beside, Ok(Acquire::Busy(Some(_)))),
        );
        if let Err(error) = beside {
            self.report
                .miss(format!("a lost acquire waited for a row lock: {error}"));
        }
        Ok(())
    }

    /// Renewals must be HOT: they touch no index, and the table does not grow.
    async fn renewals(&mut self) -> anyhow::Result<()> {
        let held = claim("renewed", "winner");
        self.repo.acquire(&held).await?;
        let updates = self.updates().await?;
        let before = self.start().await?;
        for _ in 0..self.times {
            anyhow::ensure!(self.repo.renew(&held).await? == Renew::Renewed, "it is ours");
        }
        let cost = self.cost(before).await?;
        self.line("renew", &cost, Some(1));
        let mut after = self.updates().await?;
        // The server adds up its counters with a delay, a second at most while a session is busy.
        for _ in 0..100 {
            if after.0 - updates.0 >= i64::from(self.times) {
                break;
            }
            self.repo.renew(&held).await?;
            std::thread::sleep(Duration::from_millis(100));
            after = self.updates().await?;
        }
        let (all, hot) = (after.0 - updates.0, after.1 - updates.1);
        self.report.fact("renewals_counted", all);
        self.report.fact("renewals_hot", hot);
        self.report.fact(
            "table_bytes",
            self.onlooker.number("SELECT pg_relation_size('task_leases')").await?,
        );
        if all < i64::from(self.times) || hot * 100 < all * 99 {
            self.report.miss("fewer than 99 of 100 renewals were HOT");
        }
        Ok(())
    }

    /// Row updates of the table, and how many of them were HOT.
    async fn updates(&self) -> anyhow::Result<(i64, i64)> {
        let column = |name| format!("SELECT {name} FROM pg_stat_user_tables WHERE relname = 'task_leases'");
        Ok((
            self.onlooker.number(&column("n_tup_upd")).await?,
            self.onlooker.number(&column("n_tup_hot_upd")).await?,
        ))
    }

    /// Zeroes the counters; answers with the next transaction id.
    async fn start(&self) -> anyhow::Result<i64> {
        self.onlooker.batch_execute("SELECT pg_stat_statements_reset()").await?;
        self.next_xid().await
    }

    async fn cost(&self, before: i64) -> anyhow::Result<Cost> {
        let sum = |column| {
            format!(
                "SELECT COALESCE(sum({column}), 0)::bigint FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid \
                 WHERE d.datname = current_database() AND query LIKE '%task_leases%' \
                 AND query NOT LIKE '%pg_stat%' AND query NOT LIKE '%xmax%'"
            )
        };
        Ok(Cost {
            xids: self.next_xid().await? - before,
            statements: self.onlooker.number(&sum("calls")).await?,
            wal_bytes: self.onlooker.number(&sum("wal_bytes")).await?,
        })
    }

    /// Reading it takes none.
    async fn next_xid(&self) -> anyhow::Result<i64> {
        self.onlooker
            .number("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
            .await
    }

    fn line(&mut self, what: &str, cost: &Cost, aim: Option<i64>) {
        let times = f64::from(self.times);
        let each = |count: i64| json!((count as f64 / times * 100.0).round() / 100.0);
        let Cost {
            statements,
            wal_bytes,
            xids,
        } = *cost;
        self.report.row([
            json!(what),
            json!(self.times),
            each(statements),
            each(wal_bytes),
            each(xids),
        ]);
        if aim.is_some_and(|aim| statements != aim * i64::from(self.times)) {
            self.report
                .miss(format!("{what}: {statements} statements for {} operations", self.times));
        }
    }
}

fn claim(name: &str, label: &str) -> Claim {
    let name = LeaseName::new(name).expect("a legal name");
    Claim::new(name, Label::new(label).expect("a legal label").new_holder(), TTL)
}

//! The same on MySQL and MariaDB, against the same prepared statements in a bare loop of mysql_async: there is no `pgbench` there.

use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;
use lease_core::{BootClock, Clock, Lease};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::{Dialect, Mysql, Settings};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Params, Row, Statement, Value};

use super::{Args, Series, TTL};
use crate::measure::optimized;
use crate::report::{Report, note};

/// Connections, and the least ratio that is good enough.
const AIM: (usize, f64) = (8, 0.85);

/// Our statements, which a test of lease-mysql pins.
const STATEMENTS: &str = include_str!("../../../../lease-mysql/tests/statements.sql");

/// The verb, with `--engine`.
pub(super) fn run(args: &Args, dialect: Dialect) -> anyhow::Result<Report> {
    optimized()?;
    let server = Mysql::private(dialect, &Settings::durable())?;
    let database = server.database()?;
    let url = database.url();
    // With the keeper's thread that makes two, as the bare loop has.
    let runtime = |threads| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()
    };
    let (one, two) = (runtime(1)?, runtime(2)?);
    one.block_on(async { MysqlRepo::connect(url).await?.migrate().await })?;
    let seconds = Duration::from_secs(args.seconds);

    let mut report = Report::new(&["connections", "bare", "ours", "ratio", "least", "most", "aim"]);
    report.fact("runs", args.runs);
    report.fact("seconds_each", args.seconds);
    if args.runs < 10 {
        report.miss("fewer than 10 runs of each");
    }
    let (connections, aim) = AIM;
    let mut series = Series::default();
    for number in 0..args.runs {
        // Who comes first changes, for the second may find the disk busy with what the first left.
        let (theirs, ours) = if number % 2 == 0 {
            let theirs = two.block_on(bare_pairs(url, connections, seconds))?;
            (theirs, one.block_on(our_pairs(url, connections, seconds))?)
        } else {
            let ours = one.block_on(our_pairs(url, connections, seconds))?;
            (two.block_on(bare_pairs(url, connections, seconds))?, ours)
        };
        note(format_args!(
            "{connections} connections: bare {theirs:.0}/s, ours {ours:.0}/s"
        ));
        series.add(theirs, ours);
    }
    let ratio = series.line(&mut report, connections, aim);
    if ratio < aim {
        report.miss(format!(
            "{connections} connections: {ratio:.2} of the bare loop, not {aim}"
        ));
    }
    Ok(report)
}

/// As an application does it: one `Lease` for all.
async fn our_pairs(url: &str, connections: usize, time: Duration) -> anyhow::Result<f64> {
    let lease = Lease::new(MysqlRepo::connect(url).await?.connections(connections)?);
    // Every connection is open, and has its statements and its row, before the clock runs.
    for _ in 0..2 {
        let clients = (0..connections).map(|client| tokio::spawn(super::pair(lease.clone(), client)));
        for ended in try_join_all(clients).await? {
            ended?;
        }
    }
    let start = BootClock.now();
    let end = start + time;
    let counts = (0..connections).map(|client| {
        let lease = lease.clone();
        tokio::spawn(async move {
            let mut count = 0_u32;
            while BootClock.now() < end {
                super::pair(lease.clone(), client).await?;
                count += 1;
            }
            anyhow::Ok(count)
        })
    });
    let counts: Vec<u32> = try_join_all(counts).await?.into_iter().collect::<anyhow::Result<_>>()?;
    let took = BootClock.now().since(start);
    lease.shutdown(Duration::ZERO).await;
    Ok(f64::from(counts.iter().sum::<u32>()) / took.as_secs_f64())
}

/// The statements of a pair on connections that do nothing else.
async fn bare_pairs(url: &str, connections: usize, time: Duration) -> anyhow::Result<f64> {
    let mut clients = Vec::new();
    for client in 0..connections {
        let mut bare = Bare::open(url, client).await?;
        bare.pair().await?;
        clients.push(bare);
    }
    let start = BootClock.now();
    let end = start + time;
    let counts = clients.into_iter().map(|mut bare| {
        tokio::spawn(async move {
            let mut count = 0_u32;
            while BootClock.now() < end {
                bare.pair().await?;
                count += 1;
            }
            anyhow::Ok(count)
        })
    });
    let counts: Vec<u32> = try_join_all(counts).await?.into_iter().collect::<anyhow::Result<_>>()?;
    let took = BootClock.now().since(start);
    Ok(f64::from(counts.iter().sum::<u32>()) / took.as_secs_f64())
}

/// A connection with the three statements of a pair.
struct Bare {
    connection: Conn,
    peek: Prepared,
    take: Prepared,
    release: Prepared,
    name: Vec<u8>,
    count: u64,
}

impl Bare {
    async fn open(url: &str, client: usize) -> anyhow::Result<Self> {
        let opts = OptsBuilder::from_opts(Opts::from_url(url)?)
            .prefer_socket(false)
            .client_found_rows(true);
        let mut connection = Conn::new(opts).await?;
        connection.query_drop("SET time_zone = '+00:00'").await?;
        let name = format!("bare-{client}");
        let row = format!(
            "REPLACE INTO task_leases (name, holder, acquired_at, expires_at) \
             VALUES ('{name}', '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"
        );
        connection.query_drop(row).await?;
        Ok(Self {
            peek: Prepared::new(&mut connection, "Peek").await?,
            take: Prepared::new(&mut connection, "Take").await?,
            release: Prepared::new(&mut connection, "Release").await?,
            connection,
            name: name.into_bytes(),
            count: 0,
        })
    }

    async fn pair(&mut self) -> anyhow::Result<()> {
        self.count += 1;
        let name = Value::Bytes(self.name.clone());
        let holder = Value::Bytes(format!("bare/{}", self.count).into_bytes());
        let values = self.peek.values(std::slice::from_ref(&name))?;
        let row: Option<Row> = self.connection.exec_first(&self.peek.statement, values).await?;
        let row = row.context("a look has a row")?;
        let (token, next): (i64, i64) = (row.get(1).context("a token")?, row.get(2).context("the next token")?);
        let ttl = Value::Int(i64::try_from(TTL.as_micros())?);
        let values = [name.clone(), holder.clone(), ttl, Value::Int(next), Value::Int(token)];
        let values = self.take.values(&values)?;
        self.connection.exec_drop(&self.take.statement, values).await?;
        ensure!(self.connection.affected_rows() == 1, "nobody else has it");
        let values = self.release.values(&[name, holder, Value::Int(0)])?;
        self.connection.exec_drop(&self.release.statement, values).await?;
        ensure!(self.connection.affected_rows() == 1, "it was ours");
        Ok(())
    }
}

/// A statement of ours with `?` for `$1`, `$2`..
struct Prepared {
    statement: Statement,
    /// Which value stands at each `?`, from zero on.
    places: Vec<usize>,
}

impl Prepared {
    async fn new(connection: &mut Conn, name: &str) -> anyhow::Result<Self> {
        let (text, places) = statement(name).with_context(|| format!("no statement {name}"))?;
        let statement = connection.prep(text).await?;
        Ok(Self { statement, places })
    }

    fn values(&self, values: &[Value]) -> anyhow::Result<Params> {
        let each = self.places.iter().map(|place| values.get(*place).cloned());
        let all: Option<Vec<Value>> = each.collect();
        Ok(Params::Positional(all.context("a value is missing")?))
    }
}

/// The text of a statement, and which value stands at each of its `?`.
fn statement(name: &str) -> Option<(String, Vec<usize>)> {
    let (statements, now) = STATEMENTS.split_once("-- NOW stands for\n")?;
    let (_, rest) = statements.split_once(&format!("-- {name}\n"))?;
    let [text, now] = [rest, now].map(|text| text.lines().next().unwrap_or_default().trim_end_matches(';'));
    let text = text.replace("NOW", now);
    let mut pieces = text.split('$');
    let mut prepared = pieces.next()?.to_owned();
    let mut places = Vec::new();
    for piece in pieces {
        let (number, rest) = piece.split_at_checked(1)?;
        places.push(number.parse::<usize>().ok()?.checked_sub(1)?);
        prepared += "?";
        prepared += rest;
    }
    Some((prepared, places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_of_a_pair_is_there_with_all_its_values() {
        for (name, values) in [("Peek", 1), ("Take", 5), ("Release", 3)] {
            let (text, places) = statement(name).unwrap();
            assert!(!text.contains(['$', ';']) && !text.contains(" NOW "), "{text}");
            assert_eq!(text.matches('?').count(), places.len());
            assert_eq!(places.iter().max(), Some(&(values - 1)), "{text}");
        }
    }
}

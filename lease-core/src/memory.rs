//! [`MemoryRepo`]: the reference backend, with a clock that tests move.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::clock::{Moment, boot_time};
use crate::{
    Acquire, Claim, DbTime, Evict, Inspect, Label, LeaseName, LeaseRow, Note, Release, Renew, Repo, RepoError,
    RowTimes, microseconds,
};

mod freed;
mod mutant;
mod rows;

use freed::Freed;
#[cfg(feature = "mutants")]
pub use mutant::Mutant;
pub use rows::{Row, Rows};

/// Leases in this process's memory: for tests of code that uses a `Lease`, and the yardstick for other backends.
///
/// A clone shares the rows: it is one more client of the same store. Its clock starts from the wall clock, runs with
/// the machine's monotonic clock, and [`advance`](Self::advance) moves it on. It never fails and never waits.
///
/// It protects nothing beyond the process it lives in.
#[derive(Clone)]
pub struct MemoryRepo {
    store: Arc<Store>,
}

struct Store {
    rows: Mutex<Rows>,
    freed: Freed,
    /// Microseconds since 1970 at the zero of `now`, all moves of the clock included.
    offset_us: AtomicI64,
    now: Box<dyn Fn() -> Moment + Send + Sync>,
}

impl MemoryRepo {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::with_time(boot_time)
    }

    /// An empty store whose clock runs with `now`, for example a test's own clock.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the database's wall clock, from which tokens start"
    )]
    pub fn with_time(now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        let wall = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let offset_us = AtomicI64::new(microseconds(wall) - micros(now()));
        Self {
            store: Arc::new(Store {
                rows: Mutex::new(Rows::default()),
                freed: Freed::default(),
                offset_us,
                now: Box::new(now),
            }),
        }
    }

    /// Breaks one rule from now on, for every client of this store.
    #[cfg(feature = "mutants")]
    pub fn break_rule(&self, mutant: Mutant) {
        self.rows().break_rule(mutant);
    }

    /// Moves the store's clock on.
    pub fn advance(&self, by: Duration) {
        self.step_clock(microseconds(by));
    }

    /// Moves the store's clock by microseconds, back if negative: a step of the database's clock.
    pub fn step_clock(&self, by_us: i64) {
        self.store.offset_us.fetch_add(by_us, Ordering::SeqCst);
    }

    /// The store's clock: microseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn now_us(&self) -> i64 {
        micros((self.store.now)()) + self.store.offset_us.load(Ordering::SeqCst)
    }

    /// A copy of all rows, by name.
    #[must_use]
    pub fn snapshot(&self) -> BTreeMap<String, Row> {
        self.rows().rows().clone()
    }

    /// Deletes a row by hand, as no method of the contract does.
    pub fn delete_row(&self, name: &LeaseName) {
        self.rows().delete(name);
        self.store.freed.happened();
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.store.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "mutants")]
impl MemoryRepo {
    fn breaks(&self, rule: Mutant) -> bool {
        self.rows().breaks(rule)
    }

    /// What a store does whose check and write are two statements: others come in between.
    async fn look_then_take(&self, claim: &Claim) -> Acquire {
        let mut seen = self.rows().clone();
        let answer = seen.acquire(claim, self.now_us());
        let mut waited = false;
        std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            if std::mem::replace(&mut waited, true) {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
        if matches!(answer, Acquire::Granted(_)) {
            self.rows().overwrite(&claim.name, &seen);
        }
        answer
    }
}

impl Default for MemoryRepo {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryRepo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRepo")
            .field("rows", &*self.rows())
            .finish_non_exhaustive()
    }
}

impl Repo for MemoryRepo {
    async fn acquire(&self, claim: &Claim) -> Result<Acquire, RepoError> {
        #[cfg(feature = "mutants")]
        if self.breaks(Mutant::LooksThenTakes) {
            return Ok(self.look_then_take(claim).await);
        }
        let mut rows = self.rows();
        let answer = rows.acquire(claim, self.now_us());
        #[cfg(feature = "mutants")]
        if rows.breaks(Mutant::LosesTheReply) {
            return Err(
                RepoError::new(crate::RepoErrorKind::Unavailable, crate::Operation::Acquire).with_lease(&claim.name),
            );
        }
        Ok(answer)
    }

    async fn renew(&self, claim: &Claim) -> Result<Renew, RepoError> {
        let mut rows = self.rows();
        Ok(rows.renew(claim, self.now_us()))
    }

    async fn release(&self, claim: &Claim) -> Result<Release, RepoError> {
        let answer = self.rows().release(claim, self.now_us());
        self.store.freed.happened();
        Ok(answer)
    }

    async fn freed(&self, _: &LeaseName) {
        self.store.freed.next().await;
    }

    fn batch_size(&self) -> usize {
        1_000
    }

    async fn renew_all(&self, claims: &[Claim]) -> Vec<Result<Renew, RepoError>> {
        #[cfg_attr(not(feature = "mutants"), expect(unused_mut, reason = "only a mutant sorts"))]
        let mut order: Vec<&Claim> = claims.iter().collect();
        let mut rows = self.rows();
        #[cfg(feature = "mutants")]
        if rows.breaks(Mutant::RenewAllSorts) {
            order.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let now = self.now_us();
        order.into_iter().map(|claim| Ok(rows.renew(claim, now))).collect()
    }
}

impl Inspect for MemoryRepo {
    async fn list(&self) -> Result<Vec<LeaseRow>, RepoError> {
        let rows = self.rows();
        let now = self.now_us();
        Ok(rows
            .rows()
            .iter()
            .map(|(name, row)| lease_row(name, row, now))
            .collect())
    }

    async fn get(&self, name: &LeaseName) -> Result<Option<LeaseRow>, RepoError> {
        let rows = self.rows();
        let now = self.now_us();
        Ok(rows
            .rows()
            .get(name.as_str())
            .map(|row| lease_row(name.as_str(), row, now)))
    }

    async fn evict(&self, name: &LeaseName, by: &Label, reason: &Note) -> Result<Evict, RepoError> {
        let mut rows = self.rows();
        Ok(rows.evict(name, by, reason, self.now_us(), false))
    }

    async fn evict_now(&self, name: &LeaseName, by: &Label, reason: &Note) -> Result<Evict, RepoError> {
        let answer = self.rows().evict(name, by, reason, self.now_us(), true);
        self.store.freed.happened();
        Ok(answer)
    }

    async fn pause(&self, name: &LeaseName, duration: Duration, by: &Label, reason: &Note) -> Result<(), RepoError> {
        let mut rows = self.rows();
        rows.pause(name, microseconds(duration), by, reason, self.now_us());
        Ok(())
    }

    async fn resume(&self, name: &LeaseName) -> Result<Release, RepoError> {
        let answer = self.rows().resume(name, self.now_us());
        self.store.freed.happened();
        Ok(answer)
    }

    async fn purge(&self, older_than: Duration) -> Result<u64, RepoError> {
        let mut rows = self.rows();
        Ok(rows.purge(microseconds(older_than), self.now_us()))
    }
}

fn lease_row(name: &str, row: &Row, now_us: i64) -> LeaseRow {
    let times = RowTimes {
        acquired_at: DbTime::from_micros(row.acquired_at),
        expires_at: DbTime::from_micros(row.expires_at),
        read_at: DbTime::from_micros(now_us),
    };
    let mut shown = LeaseRow::new(name.to_owned(), row.holder.clone(), row.token, times);
    shown.released_at = row.released_at.map(DbTime::from_micros);
    shown.note.clone_from(&row.note);
    shown
}

fn micros(moment: Moment) -> i64 {
    i64::try_from(moment.as_nanos() / 1_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "tokens start from the wall clock, and this is the test of that"
    )]
    fn its_clock_starts_from_the_wall_clock_and_moves_when_told() {
        let repo = MemoryRepo::new();
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let off = repo.now_us() - microseconds(wall);
        assert!(off.abs() < 60_000_000, "{off} us");
        let before = repo.now_us();
        repo.advance(Duration::from_secs(3_600));
        assert!((3_600_000_000..3_660_000_000).contains(&(repo.now_us() - before)));
    }

    /// Tokens were all 1 there, and the time left of a lease without an end overflowed.
    #[test]
    fn before_1970_tokens_grow_and_the_time_left_saturates() {
        let mut rows = Rows::default();
        let claim = |pod: &str, ttl| {
            let holder = crate::Holder::new(pod).unwrap();
            Claim::new(LeaseName::from_static("job"), holder, ttl)
        };
        let us = Duration::from_micros(1);
        let granted = |token| Acquire::Granted(crate::Token::new(token).unwrap());
        assert_eq!(rows.acquire(&claim("a/1", us), -50), granted(1));
        assert_eq!(rows.acquire(&claim("b/1", us), -40), granted(2));
        assert_eq!(rows.acquire(&claim("b/2", Duration::MAX), 10), granted(10));
        let Acquire::Busy(Some(incumbent)) = rows.acquire(&claim("c/1", us), -30) else {
            panic!("a lease without an end was granted to another");
        };
        assert_eq!(microseconds(incumbent.expires_in), i64::MAX);
    }

    #[test]
    fn its_rows_can_be_looked_at_and_deleted_by_hand() {
        let repo = MemoryRepo::new();
        let claim = Claim::new(
            LeaseName::from_static("job"),
            crate::Holder::new("pod/1").unwrap(),
            Duration::from_secs(1),
        );
        repo.rows().acquire(&claim, repo.now_us());
        assert_eq!(repo.snapshot()["job"].holder, "pod/1");
        repo.delete_row(&claim.name);
        assert!(repo.snapshot().is_empty());
    }

    #[test]
    fn what_it_holds_can_be_read_in_a_failed_assertion() {
        assert!(format!("{:?}", MemoryRepo::new()).starts_with("MemoryRepo { rows: "));
    }
}

//! Looks at the rows all the time, by statements of its own, for one that stays live longer than anybody can have asked for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lease_core::{BootClock, Clock};
use serde::Serialize;

use crate::admin::Admin;
use crate::engine::{Engine, TTL};
use crate::line::now;

/// How often it looks.
const EVERY: Duration = Duration::from_millis(250);
/// How long a row may stay live after the statement that left it so.
const LIMIT: Duration = TTL.saturating_add(Duration::from_secs(1));

const POSTGRES: &str =
    "SELECT concat_ws(' ', name, holder, token, expires_at, expires_at > clock_timestamp()) FROM task_leases";
const MYSQL: &str = "SELECT CONVERT(CONCAT_WS(' ', name, holder, token, DATE_FORMAT(expires_at, '%H:%i:%s.%f'), \
                     IF(expires_at > UTC_TIMESTAMP(6), 't', 'f')) USING utf8mb4) FROM app.task_leases";

/// A row that was live for too long with nobody touching it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Stuck {
    /// Name, holder, token, expiry.
    pub(crate) row: String,
    /// When it was seen so first and last, in nanoseconds.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// What was seen of each row: how it was, since when.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    seen: HashMap<String, (String, u64)>,
    stuck: Vec<Stuck>,
}

impl Rows {
    /// Takes one row as it is now: `name holder token expiry.. t`, with `t` for live.
    fn look(&mut self, row: &str, at: u64) {
        let Some((state, live)) = row.rsplit_once(' ') else {
            return;
        };
        let name = state.split(' ').next().unwrap_or_default().to_owned();
        let (before, since) = self.seen.entry(name).or_insert_with(|| (state.to_owned(), at));
        if before != state {
            (*before, *since) = (state.to_owned(), at);
        }
        if live != "t" || Duration::from_nanos(at - *since) <= LIMIT {
            return;
        }
        match self.stuck.last_mut().filter(|last| last.row == state) {
            Some(last) => last.to = at,
            None => self.stuck.push(Stuck {
                row: state.to_owned(),
                from: *since,
                to: at,
            }),
        }
    }
}

/// The task that looks.
#[derive(Debug)]
pub(crate) struct Sampler {
    rows: Arc<Mutex<Rows>>,
    looks: Arc<AtomicUsize>,
}

impl Sampler {
    /// Looks at the first of these servers, from the one that is `primary`, that answers.
    pub(crate) fn start(engine: Engine, addresses: Vec<String>, primary: Arc<AtomicUsize>) -> Self {
        let sampler = Self {
            rows: Arc::default(),
            looks: Arc::default(),
        };
        let (rows, looks) = (sampler.rows.clone(), sampler.looks.clone());
        tokio::spawn(async move {
            let mut admins: Vec<Admin> = addresses.iter().map(|address| Admin::new(engine, address)).collect();
            let text = if engine.is_postgres() { POSTGRES } else { MYSQL };
            let limit = Duration::from_millis(400);
            loop {
                // On a cluster one that answers is as good as another; a standby's rows are not the primary's.
                let tries = if engine == Engine::Galera { admins.len() } else { 1 };
                let first = primary.load(Ordering::SeqCst);
                for index in 0..tries {
                    let index = (first + index) % admins.len();
                    let Ok(found) = admins[index].sql_within(text, limit).await else {
                        continue;
                    };
                    let (at, mut rows) = (now(), rows.lock().unwrap_or_else(PoisonError::into_inner));
                    found.iter().for_each(|row| rows.look(row, at));
                    looks.fetch_add(1, Ordering::SeqCst);
                    break;
                }
                BootClock.sleep_until(BootClock.now() + EVERY).await;
            }
        });
        sampler
    }

    /// How often the rows were seen, and which were stuck.
    pub(crate) fn found(&self) -> (usize, Vec<Stuck>) {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        (self.looks.load(Ordering::SeqCst), rows.stuck.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_row_that_nobody_renews_and_that_stays_live_is_stuck() {
        let mut rows = Rows::default();
        let limit = u64::try_from(LIMIT.as_nanos()).unwrap();
        for second in 0..limit / SECOND {
            rows.look("a pod-1/x 7 12:00 t", second * SECOND);
            // Renewed each time.
            rows.look(&format!("b pod-1/y 7 12:0{second} t"), second * SECOND);
            // Expired, whatever stands there.
            rows.look("c pod-1/z 7 11:00 f", second * SECOND);
        }
        rows.look("a pod-1/x 7 12:00 t", limit);
        assert_eq!(rows.stuck, [], "not longer than a ttl and a second");
        rows.look("a pod-1/x 7 12:00 t", limit + 1);
        rows.look("b pod-1/y 7 12:09 t", 9 * SECOND);
        rows.look("c pod-1/z 7 11:00 f", 9 * SECOND);
        let row = "a pod-1/x 7 12:00".to_owned();
        let (from, to) = (0, limit + 1);
        assert_eq!(rows.stuck, [Stuck { row, from, to }]);
    }
}

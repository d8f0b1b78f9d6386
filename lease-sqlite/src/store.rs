//! [`Store`]: the connection, and the thread that waits for the disk and for other processes' locks.
//!
//! SQLite blocks whoever calls it. One thread per repo does, so that no runtime is blocked; one is enough, since a file has
//! one writer at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::result::QueryResult;
use diesel::sql_types::Text;
use diesel::{Connection, QueryableByName, RunQueryDsl, SqliteConnection};
use lease_core::{BootClock, Clock, Moment, RepoError, RepoErrorKind};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::error::{Failure, Subject};
use crate::place::{Identity, Place};

/// How long to wait before a statement that another's lock was in the way of is tried again. SQLite itself waits first, for
/// most locks.
const PAUSE: Duration = Duration::from_millis(5);

/// A way to the thread that has the connection. Cheap to clone; the thread ends with the last one.
#[derive(Debug, Clone)]
pub(crate) struct Store(Sender<Job>);

type Job = Box<dyn FnOnce(&mut File) + Send>;

impl Store {
    /// Starts the thread. It opens the file when it is first asked for something.
    pub(crate) fn start(place: Place) -> std::io::Result<Self> {
        let (jobs, queue) = channel();
        thread::Builder::new()
            .name("lease-sqlite".to_owned())
            .spawn(move || File { place, open: None }.serve(&queue))?;
        Ok(Self(jobs))
    }

    /// Runs `work` on the connection, again as long as other processes are in the way and there is time.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        subject: Subject,
        limit: Duration,
        work: impl FnMut(&mut SqliteConnection) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, RepoError> {
        let deadline = BootClock.now() + limit;
        let (answer, answered) = oneshot::channel();
        let turn = Turn::default();
        let (its_turn, about) = (turn.clone(), subject.clone());
        let job = Box::new(move |file: &mut File| {
            if its_turn.begins() {
                // Whoever asked may have given up.
                let _ = answer.send(file.perform(&about, deadline, work));
            }
        });
        let asked = Asked(turn);
        let ended = || {
            let error = subject.error(RepoErrorKind::Unavailable);
            error.with_source("the thread that has the file has panicked")
        };
        if self.0.send(job).is_err() {
            return Err(ended().never_executed());
        }
        match timeout(limit, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(ended()),
            Err(_) => {
                let error = subject.error(RepoErrorKind::Timeout);
                Err(if asked.0.is_called_off() {
                    let text = format!("statements before it took all of {limit:?}");
                    error.with_source(text).never_executed()
                } else {
                    error.with_source(format!("the file did not answer within {limit:?}"))
                })
            }
        }
    }
}

/// Whether a job has begun, or is not to begin any more.
#[derive(Debug, Clone, Default)]
struct Turn(Arc<AtomicU8>);

const BEGUN: u8 = 1;
const CALLED_OFF: u8 = 2;

impl Turn {
    fn begins(&self) -> bool {
        self.turns(BEGUN)
    }

    fn is_called_off(&self) -> bool {
        self.turns(CALLED_OFF)
    }

    fn turns(&self, to: u8) -> bool {
        self.0
            .compare_exchange(0, to, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }
}

/// Calls a job off that nobody waits for any more and that has not begun.
struct Asked(Turn);

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = self.0.is_called_off();
    }
}

/// The file, on its thread.
struct File {
    place: Place,
    open: Option<Open>,
}

struct Open {
    connection: SqliteConnection,
    identity: Option<Identity>,
}

impl File {
    fn serve(mut self, queue: &Receiver<Job>) {
        while let Ok(job) = queue.recv() {
            job(&mut self);
        }
    }

    fn perform<T>(
        &mut self,
        subject: &Subject,
        deadline: Moment,
        mut work: impl FnMut(&mut SqliteConnection) -> QueryResult<T>,
    ) -> Result<T, RepoError> {
        loop {
            let failure = match self.attempt(deadline, &mut work) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if failure.is_broken && self.place != Place::Memory {
                self.open = None;
            }
            if !failure.is_locked || BootClock.now() + PAUSE >= deadline {
                return Err(failure.error(&self.place, subject));
            }
            thread::sleep(PAUSE);
        }
    }

    fn attempt<T>(
        &mut self,
        deadline: Moment,
        work: &mut impl FnMut(&mut SqliteConnection) -> QueryResult<T>,
    ) -> Result<T, Failure> {
        // A file that was deleted or replaced lives on for whoever has it open, and two would hold one lease.
        let identity = self.place.identity();
        if self.open.as_ref().is_some_and(|open| open.identity != identity) {
            self.open = None;
        }
        let left = deadline.since(BootClock.now());
        let place = &self.place;
        let failed = |error| Failure::statement(place, &error);
        let open = match &mut self.open {
            Some(open) => {
                wait_for_locks(&mut open.connection, left).map_err(failed)?;
                open
            }
            none => none.insert(Open::new(place, left)?),
        };
        work(&mut open.connection).map_err(failed)
    }
}

#[derive(QueryableByName)]
struct Mode {
    #[diesel(sql_type = Text)]
    journal_mode: String,
}

impl Open {
    fn new(place: &Place, left: Duration) -> Result<Self, Failure> {
        let failed = |error| Failure::statement(place, &error);
        if let Some((kind, text)) = place.obstacle() {
            return Err(Failure::new(kind, text));
        }
        let mut connection =
            SqliteConnection::establish(place.for_driver()).map_err(|error| Failure::opening(place, &error))?;
        wait_for_locks(&mut connection, left).map_err(failed)?;
        let mut mode = |text: &str| -> Result<String, Failure> {
            let modes: Vec<Mode> = diesel::sql_query(text).load(&mut connection).map_err(failed)?;
            Ok(modes
                .into_iter()
                .next()
                .map(|mode| mode.journal_mode)
                .unwrap_or_default())
        };
        // Readers and the writer don't wait for each other; it stays in the file.
        let found = mode("PRAGMA journal_mode")?;
        if found != "wal" && *place != Place::Memory {
            let made = mode("PRAGMA journal_mode = WAL")?;
            if made != "wal" {
                let text = format!("its journal mode stays {made}, and write-ahead logging is needed");
                return Err(Failure::new(RepoErrorKind::Config, text));
            }
        }
        // A grant that was reported is on the disk.
        connection.batch_execute("PRAGMA synchronous = FULL").map_err(failed)?;
        Ok(Self {
            connection,
            identity: place.identity(),
        })
    }
}

/// How long SQLite itself waits for a lock.
fn wait_for_locks(connection: &mut SqliteConnection, time: Duration) -> QueryResult<()> {
    connection.batch_execute(&format!("PRAGMA busy_timeout = {}", time.as_millis()))
}

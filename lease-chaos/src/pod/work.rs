//! f: what runs under the lease.

use std::time::Duration;

use lease_core::{BootClock, Clock, Held};
use tokio::sync::watch;

use crate::line::{Book, Did, now};

/// How often f is polled.
const STEP: Duration = Duration::from_millis(20);
/// How long a poll takes: what is frozen in the middle of one goes on with it when it thaws.
const POLL: Duration = Duration::from_millis(5);

/// Works for this long and never asks whether it may: it counts on being dropped.
pub(super) async fn work(held: Held, length: Duration, now_held: &watch::Sender<Option<Held>>, book: &Book) {
    let mut inside = Inside::enter(&held, book);
    // The writer goes on after the end of this: what f spawned is not dropped with it.
    now_held.send_replace(Some(held));
    let end = BootClock.now() + length;
    while BootClock.now() < end {
        inside.is_polled();
        std::thread::sleep(POLL);
        inside.is_polled();
        BootClock.sleep_until(BootClock.now() + STEP).await;
    }
}

/// Being inside. However it ends, it is known when the last poll was.
struct Inside<'a> {
    book: &'a Book,
    name: String,
    token: i64,
    last: u64,
}

impl<'a> Inside<'a> {
    fn enter(held: &Held, book: &'a Book) -> Self {
        let (at, name, token) = (now(), held.name().as_str().to_owned(), held.token().get());
        book.write(&name, token, Did::Enter { at });
        Self {
            book,
            name,
            token,
            last: at,
        }
    }

    fn is_polled(&mut self) {
        self.last = now();
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.book.write(&self.name, self.token, Did::Leave { at: self.last });
    }
}

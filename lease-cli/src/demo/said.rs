//! [`Said`]: one line by which a pod tells what it does.

use lease_core::Moment;

/// What a pod said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    /// Which pod; it need not say so, since each has a pipe of its own.
    pub(super) pod: usize,
    pub(super) what: What,
    /// Its fencing token, 0 without one.
    pub(super) token: i64,
    /// By the machine's clock, which all its processes share, read where it happened.
    pub(super) at: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// It waits for the lease.
    Waits,
    /// It has the lease, and its f has begun.
    Works,
    /// Its f is being polled.
    Steps,
    /// A renewal was answered.
    Renewed,
    /// What its f has spawned writes, whether or not the lease is still there.
    Writes,
    /// Its f was dropped, for the lease was over.
    Dropped,
    /// Its f ended in order.
    Ended,
}

const WORDS: [(What, &str); 7] = [
    (What::Waits, "waits"),
    (What::Works, "works"),
    (What::Steps, "steps"),
    (What::Renewed, "renewed"),
    (What::Writes, "writes"),
    (What::Dropped, "dropped"),
    (What::Ended, "ended"),
];

/// The line for a pod to write.
pub(super) fn line(what: What, token: i64, at: Moment) -> String {
    let word = WORDS
        .iter()
        .find(|(other, _)| *other == what)
        .map_or("", |(_, word)| word);
    format!("{word} {token} {}\n", at.as_nanos())
}

impl Said {
    /// Reads a pod's line.
    pub(super) fn read(pod: usize, line: &str) -> Option<Self> {
        let mut parts = line.split(' ');
        let word = parts.next()?;
        let (what, _) = *WORDS.iter().find(|(_, other)| *other == word)?;
        let token = parts.next()?.parse().ok()?;
        let at = Moment::from_nanos(parts.next()?.parse().ok()?);
        Some(Self { pod, what, token, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (what, _) in WORDS {
            let (pod, token, at) = (2, 7, Moment::from_nanos(9));
            let line = line(what, token, at);
            assert_eq!(Said::read(pod, line.trim_end()), Some(Said { pod, what, token, at }));
        }
        assert_eq!(Said::read(0, "works"), None);
        assert_eq!(Said::read(0, "thread 'main' panicked 1 2"), None);
    }
}

//! [`Fault`] and [`Chances`]: what can go wrong with one call.

use std::time::Duration;

use lease_core::{Operation, RepoErrorKind};

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The store never sees it, and the error proves that: a connection refused.
    Refused,
    /// The store never sees it, and the error leaves that open.
    Fails(RepoErrorKind),
    /// The store commits, and the caller gets an error: the connection broke before the reply.
    ReplyLost,
    /// The caller gets a timeout at once; the statement runs only with [`FaultyRepo::run_late`](super::FaultyRepo::run_late).
    RunsLate,
    /// So long goes by before the store sees it.
    Delay(Duration),
    /// The store commits at once, and the reply comes so much later.
    DelayReply(Duration),
    /// The store never sees it, and no answer ever comes.
    Hang,
    /// The store commits, and no answer ever comes.
    HangReply,
    /// No answer ever comes; the statement runs only with [`FaultyRepo::run_late`](super::FaultyRepo::run_late), also
    /// when the caller has given up: a server process that is frozen with the statement inside.
    Frozen,
}

/// How likely each call of a seeded [`FaultyRepo`](super::FaultyRepo) fails, in percent. They add up to 100 at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chances {
    /// [`Fault::Fails`] with `Unavailable`.
    pub fails: u8,
    /// [`Fault::ReplyLost`].
    pub reply_lost: u8,
    /// [`Fault::Delay`] or [`Fault::DelayReply`], up to [`longest_delay`](Self::longest_delay).
    pub delay: u8,
    /// [`Fault::Hang`] or [`Fault::HangReply`].
    pub hang: u8,
    /// The longest delay.
    pub longest_delay: Duration,
}

impl Chances {
    /// Nothing ever fails.
    pub const NONE: Self = Self {
        fails: 0,
        reply_lost: 0,
        delay: 0,
        hang: 0,
        longest_delay: Duration::ZERO,
    };

    /// The fault of the `call`-th call of an operation: the same for the same seed, whatever else runs meanwhile.
    pub(super) fn draw(&self, seed: u64, operation: Operation, call: u64) -> Option<Fault> {
        let stream = match operation {
            Operation::Acquire => 1,
            Operation::Renew => 2,
            Operation::Release => 3,
            _ => 4,
        };
        let mut state = mix(seed ^ mix(stream ^ mix(call)));
        let mut next = || {
            state = mix(state);
            state
        };
        let mut chance = next() % 100;
        let mut falls = |percent: u8| {
            let hit = chance < u64::from(percent);
            chance = chance.saturating_sub(u64::from(percent));
            hit
        };
        if falls(self.fails) {
            return Some(Fault::Fails(RepoErrorKind::Unavailable));
        }
        if falls(self.reply_lost) {
            return Some(Fault::ReplyLost);
        }
        let (delays, hangs) = (falls(self.delay), falls(self.hang));
        let before = next().is_multiple_of(2);
        if delays {
            let longest = u64::try_from(self.longest_delay.as_micros()).unwrap_or(u64::MAX);
            let delay = Duration::from_micros(next() % longest.saturating_add(1).max(1));
            return Some(if before {
                Fault::Delay(delay)
            } else {
                Fault::DelayReply(delay)
            });
        }
        hangs.then_some(if before { Fault::Hang } else { Fault::HangReply })
    }
}

/// The finalizer of `SplitMix64` (Steele, Lea, Flood 2014): short, and the same on every machine and version.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

//! [`Rates`] and [`Course`]: what becomes of one statement on its way to the store and back.

use lease_core::RepoErrorKind;

use super::dice::Dice;

/// What can go wrong with a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It takes long to get there.
    SlowToExecute,
    /// Its answer takes long.
    SlowToAnswer,
    /// It executes, and the caller gets an error.
    ReplyLost,
    /// It never executes, and the error proves that.
    Refused,
    /// It never executes, and the error leaves that open.
    Fails,
    /// It never executes, and there is no answer.
    Hangs,
    /// It executes, and there is no answer.
    ReplyHangs,
    /// The caller gets an error at once, and it executes later.
    Late,
    /// It executes exactly when the row in its way expires, or a microsecond before or after; at a later expiry if the row is renewed
    /// meanwhile.
    AtExpiry,
    /// It executes and is answered, and later it executes once more.
    Twice,
    /// It executes, the answer is lost, and later it executes once more.
    TwiceAndLost,
}

/// All of them, with their names for the summary.
pub const FAULTS: [(Fault, &str); 11] = [
    (Fault::SlowToExecute, "slow to execute"),
    (Fault::SlowToAnswer, "slow to answer"),
    (Fault::ReplyLost, "reply lost"),
    (Fault::Refused, "refused"),
    (Fault::Fails, "fails"),
    (Fault::Hangs, "hangs"),
    (Fault::ReplyHangs, "reply hangs"),
    (Fault::Late, "executes late"),
    (Fault::AtExpiry, "executes at an expiry"),
    (Fault::Twice, "executes twice"),
    (Fault::TwiceAndLost, "executes twice, reply lost"),
];

/// How often each happens, in thousand statements.
#[derive(Debug, Clone)]
pub struct Rates {
    of: [u64; FAULTS.len()],
    /// Whether the store's driver keeps `Claim::limit` by itself, in thousand.
    keeps_the_limit: u64,
    /// The longest way of a statement that meets no fault, in microseconds.
    latency: u64,
}

/// What becomes of one statement. Delays are in microseconds, from when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// What goes wrong.
    pub fault: Option<Fault>,
    /// When it executes, and when once more.
    pub executes: [Option<u64>; 2],
    /// What the caller gets.
    pub reply: Reply,
}

/// What the caller gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The answer of the first execution, so much later.
    Answer(u64),
    /// An error.
    Error {
        /// When.
        at: u64,
        /// Which.
        kind: RepoErrorKind,
        /// Whether it proves that nothing was executed.
        never: bool,
    },
    /// Nothing.
    Never,
}

impl Rates {
    /// The rates of a world in which so many statements of thousand go wrong.
    pub fn draw(awful: u64, dice: &mut Dice) -> Self {
        let shares: [u64; FAULTS.len()] = std::array::from_fn(|_| dice.pick(&[0, 1, 1, 2, 5]));
        let all = shares.iter().sum::<u64>().max(1);
        Self {
            of: shares.map(|share| share * awful / all),
            keeps_the_limit: dice.pick(&[0, 500, 1_000]),
            latency: dice.pick(&[100, 1_000, 10_000, u64::MAX]),
        }
    }

    /// Nothing goes wrong any more, and the network is quick: on one that is slower than a job's `renew_every`, the job
    /// can't start.
    pub fn heal(&mut self) {
        self.of = [0; FAULTS.len()];
        self.latency = self.latency.min(1_000);
    }

    /// Whether a statement's course may depend on when a row expires.
    pub fn knows_expiries(&self) -> bool {
        FAULTS
            .iter()
            .zip(self.of)
            .any(|((fault, _), rate)| *fault == Fault::AtExpiry && rate > 0)
    }

    /// What becomes of the next statement.
    ///
    /// `ttl` and `limit` are its own; `to_expiry` is how long the row in its way has to live.
    pub fn course(&self, outage: bool, ttl: u64, limit: u64, to_expiry: Option<u64>, dice: &mut Dice) -> Course {
        let fault = if outage {
            Some(outage_fault(dice))
        } else {
            self.fault(dice)
        };
        // The slowest way there and back is just within the limit.
        let longest = if self.latency > ttl {
            limit * 45 / 100
        } else {
            self.latency.min(ttl / 40)
        };
        let (way, back) = (dice.between(1..=longest), dice.between(1..=longest));
        let long = dice.spread(ttl * 3);
        let kind = dice.pick(&[
            RepoErrorKind::Unavailable,
            RepoErrorKind::Unavailable,
            RepoErrorKind::Timeout,
            RepoErrorKind::Denied,
        ]);
        let error = |at, never| Reply::Error { at, kind, never };
        let once = |at| [Some(at), None];
        let exact = || (to_expiry.unwrap_or(way) + way % 3).saturating_sub(1);
        let (executes, reply) = match fault {
            None => (once(way), Reply::Answer(back)),
            Some(Fault::SlowToExecute) => (once(long), Reply::Answer(back)),
            Some(Fault::SlowToAnswer) => (once(way), Reply::Answer(long)),
            Some(Fault::ReplyLost) => (once(way), error(way + back, false)),
            Some(Fault::Refused) => ([None, None], error(way + back, true)),
            Some(Fault::Fails) => ([None, None], error(way + back, false)),
            Some(Fault::Hangs) => ([None, None], Reply::Never),
            Some(Fault::ReplyHangs) => (once(way), Reply::Never),
            Some(Fault::Late) => (once(long), error(way, false)),
            Some(Fault::AtExpiry) => (once(exact()), Reply::Answer(back)),
            Some(Fault::Twice) => ([Some(way), Some(way + long)], Reply::Answer(back)),
            Some(Fault::TwiceAndLost) => ([Some(way), Some(way + long)], error(way + back, false)),
        };
        let reply = self.limited(executes[0], reply, limit, dice);
        Course { fault, executes, reply }
    }

    fn fault(&self, dice: &mut Dice) -> Option<Fault> {
        let mut drawn = dice.between(0..=999);
        for ((fault, _), rate) in FAULTS.iter().zip(self.of) {
            if drawn < rate {
                return Some(*fault);
            }
            drawn -= rate;
        }
        None
    }

    /// A good driver answers within the limit: that it does not know.
    fn limited(&self, executes: Option<u64>, reply: Reply, limit: u64, dice: &mut Dice) -> Reply {
        let takes = match reply {
            Reply::Answer(back) => executes.map(|at| at + back),
            Reply::Error { at, .. } => Some(at),
            Reply::Never => None,
        };
        if takes.is_none_or(|takes| takes > limit) && dice.chance(self.keeps_the_limit) {
            return Reply::Error {
                at: limit,
                kind: RepoErrorKind::Timeout,
                never: false,
            };
        }
        reply
    }
}

fn outage_fault(dice: &mut Dice) -> Fault {
    dice.pick(&[
        Fault::Refused,
        Fault::Fails,
        Fault::Fails,
        Fault::Hangs,
        Fault::Late,
        Fault::ReplyLost,
        Fault::ReplyHangs,
    ])
}

//! The explorations: small ones that tests repeat, deep ones for the command.
//!
//! Each has one kind of trouble in plenty instead of a little of all, since the states multiply.

use super::bounds::{Bounds, Budget, Network, Slack, Times};

mod deep;

pub use deep::DEEP;

const CALM: Budget = Budget {
    faults: 0,
    clocks: 0,
    crashes: 0,
    evictions: 0,
    pauses: 0,
    abandons: 0,
    shutdowns: 0,
    returns: 0,
};

const PROMPT: Slack = Slack {
    answers: 1,
    ticks: 1,
    starts: false,
};

/// Two pods, two ttl apart at the most, and no trouble.
const BASE: Bounds = Bounds {
    name: "",
    about: "",
    pods: 2,
    asks: 1,
    horizon: 8,
    times: Times::SHORT,
    network: Network::Fails,
    slack: PROMPT,
    budget: CALM,
};

/// Small enough for a test.
pub const SMALL: &[Bounds] = &[LATE, FAULTS, UNDO, CLOCKS, REPEATS, EVICTED, PAUSED, ENDINGS, TENURES];

const LATE: Bounds = Bounds {
    name: "late",
    about: "answers and ticks come late, and another pod takes over",
    slack: Slack {
        answers: 2,
        ticks: 2,
        starts: false,
    },
    ..BASE
};

const FAULTS: Bounds = Bounds {
    name: "faults",
    about: "a statement of two pods fails",
    horizon: 7,
    budget: Budget { faults: 1, ..CALM },
    ..BASE
};

const UNDO: Bounds = Bounds {
    name: "undo",
    about: "two statements of one pod fail",
    pods: 1,
    times: Times {
        at_least_for: 8,
        ..Times::SHORT
    },
    budget: Budget {
        faults: 2,
        returns: 1,
        abandons: 1,
        ..CALM
    },
    ..BASE
};

const CLOCKS: Bounds = Bounds {
    name: "clocks",
    about: "the clocks of two pods and of the database go apart by the drift, and nobody renews",
    horizon: 7,
    slack: Slack { ticks: 4, ..PROMPT },
    budget: Budget { clocks: 1, ..CALM },
    ..BASE
};

const REPEATS: Bounds = Bounds {
    name: "repeats",
    about: "a statement executes a second time, however late, also where a minimum is kept",
    pods: 1,
    times: Times {
        at_least_for: 8,
        ..Times::SHORT
    },
    network: Network::Repeats,
    budget: Budget {
        faults: 1,
        returns: 1,
        ..CALM
    },
    ..BASE
};

const EVICTED: Bounds = Bounds {
    name: "evicted",
    about: "an operator evicts the holder",
    budget: Budget { evictions: 1, ..CALM },
    ..BASE
};

const PAUSED: Bounds = Bounds {
    name: "paused",
    about: "an operator pauses the lease, and may resume it at any time",
    horizon: 7,
    budget: Budget { pauses: 1, ..CALM },
    ..BASE
};

const ENDINGS: Bounds = Bounds {
    name: "endings",
    about: "a time limit, a shutdown, an asker that is gone, an f that starts late and returns when it likes",
    pods: 1,
    horizon: 7,
    times: Times {
        at_least_for: 3,
        time_limit: Some(4),
        ..Times::SHORT
    },
    slack: Slack { starts: true, ..PROMPT },
    budget: Budget {
        abandons: 1,
        shutdowns: 1,
        returns: 1,
        ..CALM
    },
    ..BASE
};

const TENURES: Bounds = Bounds {
    name: "tenures",
    about: "a pod dies or returns, and asks again while what it sent is still on the way",
    pods: 1,
    asks: 2,
    horizon: 5,
    budget: Budget {
        faults: 1,
        crashes: 1,
        returns: 1,
        ..CALM
    },
    ..BASE
};

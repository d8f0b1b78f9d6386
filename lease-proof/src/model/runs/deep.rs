//! The explorations that take minutes.

use super::{
    BASE, Bounds, Budget, CALM, CLOCKS, ENDINGS, EVICTED, FAULTS, LATE, PROMPT, REPEATS, Slack, TENURES, Times, UNDO,
};

/// The same kinds of trouble as in the small runs, with more of it, for longer, and mixed.
pub const DEEP: &[Bounds] = &[
    Bounds {
        about: "answers and ticks come as late as they like",
        horizon: 10,
        slack: Slack {
            starts: false,
            ..Slack::ANY
        },
        ..LATE
    },
    Bounds {
        name: "longer",
        about: "the same over a longer ttl, within limits",
        horizon: 13,
        slack: Slack {
            answers: 3,
            ticks: 3,
            starts: false,
        },
        times: Times {
            ttl: 8,
            renew_every: 3,
            ..Times::SHORT
        },
        ..LATE
    },
    Bounds {
        about: "two statements of two pods fail",
        horizon: 8,
        budget: Budget { faults: 2, ..CALM },
        ..FAULTS
    },
    Bounds {
        about: "three statements of one pod fail, until after the undo has given up",
        horizon: 16,
        budget: Budget {
            faults: 3,
            ..UNDO.budget
        },
        ..UNDO
    },
    Bounds {
        about: "the clocks go apart twice, a ttl from each other, and nobody renews",
        horizon: 13,
        budget: Budget { clocks: 2, ..CALM },
        ..CLOCKS
    },
    Bounds {
        name: "clocks and faults",
        about: "the clocks go apart, and a statement fails",
        budget: Budget {
            clocks: 1,
            faults: 1,
            ..CALM
        },
        slack: Slack { ticks: 2, ..PROMPT },
        ..CLOCKS
    },
    Bounds {
        about: "a statement of two pods executes a second time",
        pods: 2,
        ..REPEATS
    },
    Bounds {
        name: "operator",
        about: "the holder is evicted and the lease paused, while answers are late",
        slack: Slack { answers: 2, ..PROMPT },
        budget: Budget {
            evictions: 1,
            pauses: 1,
            ..CALM
        },
        ..EVICTED
    },
    Bounds {
        about: "two pods end in every way",
        pods: 2,
        horizon: 8,
        ..ENDINGS
    },
    Bounds {
        about: "two pods die or return, and ask again",
        pods: 2,
        horizon: 6,
        budget: Budget {
            crashes: 1,
            returns: 1,
            ..CALM
        },
        ..TENURES
    },
    Bounds {
        name: "three pods",
        about: "one of three pods fails to renew, and the others compete",
        pods: 3,
        horizon: 7,
        slack: Slack { ticks: 2, ..PROMPT },
        budget: Budget { faults: 1, ..CALM },
        ..BASE
    },
];

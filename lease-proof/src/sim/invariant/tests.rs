//! Each invariant is violated by an observation made up for it, and holds without it.

mod endings;

use std::time::Duration;

use lease_core::{Moment, Options, Timing};

use super::*;
use crate::sim::seen::{Answer, Claimed, Ended, Executed, Kind, Polled, RowSeen, Rows, Told, Who};

const T0: Moment = Moment::from_nanos(1 << 50);
const TOKEN: i64 = 1_000;

/// A history of one name with a ttl of 12 s: drift 120 ms, margin 2 s, renewals every 4 s, retries after 1 s. Its pod's
/// clock and the store's are true.
#[derive(Clone)]
struct Made(History);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn us(millis: u64) -> i64 {
    millis as i64 * 1_000
}

fn row(holder: HolderId, token: i64, from: u64, to: u64) -> RowSeen {
    RowSeen {
        who: Who::Holder(holder),
        token,
        acquired_at: us(from),
        expires_at: us(to),
        released_at: None,
    }
}

fn rows(row: Option<RowSeen>) -> Rows {
    [row, None, None]
}

fn sent(id: usize, statement: Statement, holder: HolderId, millis: u64) -> Sent {
    Sent {
        id,
        statement,
        lease: 1,
        name: 0,
        holder,
        at_least_for: 0,
        at: T0 + ms(millis),
    }
}

fn polled(holder: HolderId, token: i64, millis: u64, row: Option<RowSeen>, stop: Option<Told>) -> What {
    What::Polled(Box::new(Polled {
        holder,
        name: 0,
        token,
        row,
        now: us(millis),
        at: T0 + ms(millis),
        stop,
        left: ms(1_880),
    }))
}

fn executed(sent: Sent, millis: u64, before: Option<RowSeen>, after: Option<RowSeen>, answer: Answer) -> What {
    What::Executed(Box::new(Executed {
        sent,
        copy: 0,
        now: us(millis),
        ttl: us(12_000),
        before: rows(before),
        after: rows(after),
        answer,
    }))
}

impl Made {
    fn new() -> Self {
        let options = Options::from(ms(12_000)).time_limit(ms(20_000));
        let mut made = Self(History {
            names: vec![Timing::new(&options).unwrap()],
            ..History::default()
        });
        made.see(0, What::Born { lease: 1, pod: 1 });
        made
    }

    fn see(&mut self, millis: u64, what: What) -> &mut Self {
        self.0.seen.push(Seen {
            at: millis * 1_000,
            what,
        });
        self
    }

    /// Holder 7 is granted the lease at once.
    fn granted() -> Self {
        let mut made = Self::new();
        let acquire = sent(1, Statement::Acquire, 7, 0);
        made.see(0, What::Sent(acquire));
        made.see(
            0,
            executed(acquire, 0, None, Some(row(7, TOKEN, 0, 12_000)), Answer::Granted(TOKEN)),
        );
        made.answer(0, acquire, Answer::Granted(TOKEN));
        made
    }

    /// And its f has started.
    fn started() -> Self {
        let mut made = Self::granted();
        let (call, lease) = (50, 1);
        made.see(
            0,
            What::Called {
                call,
                lease,
                kind: Kind::Run,
                at: T0,
            },
        );
        made.see(
            0,
            What::Started {
                holder: 7,
                call,
                at: T0,
            },
        );
        made
    }

    fn answer(&mut self, millis: u64, sent: Sent, answer: Answer) -> &mut Self {
        let at = T0 + ms(millis);
        self.see(millis, What::Answered { sent, answer, at })
    }

    fn polled(&mut self, millis: u64, stop: Option<Told>) -> &mut Self {
        self.see(millis, polled(7, TOKEN, millis, Some(row(7, TOKEN, 0, 12_000)), stop))
    }

    fn release(&mut self, millis: u64) -> &mut Self {
        self.see(millis, What::Sent(sent(99, Statement::Release, 7, millis)))
    }

    fn violates(&self) -> Vec<&'static str> {
        judge(&self.0)
            .into_iter()
            .map(|violation| violation.invariant)
            .collect()
    }
}

#[test]
fn a_quiet_history_violates_nothing() {
    let mut made = Made::started();
    made.polled(1, None);
    let gone = What::Gone {
        holder: 7,
        call: 50,
        at: T0 + ms(2),
    };
    made.see(2, gone).release(2);
    assert_eq!(made.violates(), [""; 0]);
}

#[test]
fn order_a_poll_under_a_smaller_token() {
    let mut made = Made::started();
    let mut newer = row(7, TOKEN + 1, 0, 12_000);
    newer.token = TOKEN + 1;
    made.see(1, polled(7, TOKEN + 1, 1, Some(newer), None));
    assert_eq!(made.violates(), [""; 0]);
    made.polled(2, None);
    assert_eq!(made.violates(), ["order"]);
}

#[test]
fn tokens_a_grant_of_a_live_row_a_token_that_does_not_grow_and_a_retry_with_another() {
    let acquire = sent(2, Statement::Acquire, 8, 1);
    let first = Some(row(7, TOKEN, 0, 12_000));
    let mut made = Made::granted();
    made.see(1, executed(acquire, 1, first, first, Answer::Busy));
    assert_eq!(made.violates(), [""; 0]);
    made.see(
        2,
        executed(
            acquire,
            2,
            first,
            Some(row(8, TOKEN + 1, 2, 12_002)),
            Answer::Granted(TOKEN + 1),
        ),
    );
    assert!(made.violates().contains(&"tokens"));

    let mut made = Made::granted();
    let taken = Some(row(8, TOKEN, 12_000, 24_000));
    made.see(12_000, executed(acquire, 12_000, first, taken, Answer::Granted(TOKEN)));
    assert!(made.violates().contains(&"tokens"));

    let mut made = Made::granted();
    let retry = sent(1, Statement::Acquire, 7, 0);
    made.see(
        1,
        executed(retry, 1, first, Some(row(7, TOKEN, 0, 12_001)), Answer::Granted(TOKEN)),
    );
    assert_eq!(made.violates(), [""; 0]);
    let other = Some(row(7, TOKEN + 1, 0, 12_002));
    made.see(
        2,
        executed(
            retry,
            2,
            Some(row(7, TOKEN, 0, 12_001)),
            other,
            Answer::Granted(TOKEN + 1),
        ),
    );
    assert!(made.violates().contains(&"tokens"));
}

#[test]
fn rows_a_renewal_of_what_has_expired_and_a_release_of_anothers() {
    let mut made = Made::granted();
    let first = row(7, TOKEN, 0, 12_000);
    let renew = sent(2, Statement::Renew, 7, 4_000);
    let renewed = row(7, TOKEN, 0, 16_000);
    made.see(
        4_000,
        executed(renew, 4_000, Some(first), Some(renewed), Answer::Renewed),
    );
    assert_eq!(made.violates(), [""; 0]);
    let revived = row(7, TOKEN, 0, 28_000);
    made.see(
        16_000,
        executed(renew, 16_000, Some(renewed), Some(revived), Answer::Renewed),
    );
    assert_eq!(made.violates(), ["rows"]);

    let mut made = Made::granted();
    let mut freed = first;
    (freed.released_at, freed.expires_at) = (Some(us(1)), us(1));
    let release = sent(3, Statement::Release, 8, 1);
    made.see(1, executed(release, 1, Some(first), Some(freed), Answer::Released));
    assert_eq!(made.violates(), ["rows"]);
}

#[test]
fn live_a_poll_when_the_row_has_expired_or_is_anothers() {
    let mut made = Made::started();
    made.polled(11_999, None);
    assert_eq!(made.violates(), [""; 0]);
    assert_eq!(made.clone().polled(12_000, None).violates(), ["live"]);
    let mut operators = row(7, TOKEN + 1, 0, 12_000);
    operators.who = Who::Operator;
    assert_eq!(
        made.see(11_999, polled(7, TOKEN, 11_999, Some(operators), None))
            .violates(),
        [""; 0]
    );
    let anothers = Some(row(8, TOKEN + 1, 0, 12_000));
    assert_eq!(
        made.see(11_999, polled(7, TOKEN, 11_999, anothers, None)).violates(),
        ["live"]
    );
}

#[test]
fn fresh_f_starts_under_a_grant_whose_answer_took_too_long() {
    for (millis, expected) in [(3_999, vec![]), (4_000, vec!["fresh"])] {
        let mut made = Made::new();
        let acquire = sent(1, Statement::Acquire, 7, 0);
        made.see(0, What::Sent(acquire))
            .answer(millis, acquire, Answer::Granted(TOKEN));
        made.see(
            millis,
            What::Started {
                holder: 7,
                call: 50,
                at: T0,
            },
        );
        assert_eq!(made.violates(), expected, "{millis} ms");
    }
}

#[test]
fn burned_a_renewal_after_the_release_and_a_second_acquire() {
    let mut made = Made::granted();
    made.release(1).release(2);
    assert_eq!(made.violates(), [""; 0]);
    made.see(3, What::Sent(sent(3, Statement::Renew, 7, 3)));
    assert_eq!(made.violates(), ["burned"]);
    let mut made = Made::granted();
    made.see(3, What::Sent(sent(3, Statement::Acquire, 7, 3)));
    assert_eq!(made.violates(), ["burned"]);
}

#[test]
fn last_a_release_while_f_is_there_and_a_poll_after_it() {
    let mut made = Made::started();
    made.release(1);
    assert_eq!(made.violates(), ["last"]);
    let mut made = Made::started();
    made.see(
        1,
        What::Gone {
            holder: 7,
            call: 50,
            at: T0,
        },
    )
    .release(1);
    assert_eq!(made.violates(), [""; 0]);
    made.polled(2, None);
    assert_eq!(made.violates(), ["last"]);
}

#[test]
fn stops_told_too_early_without_a_reason_too_late_or_not_at_all() {
    let renew = sent(2, Statement::Renew, 7, 9_000);
    let mut made = Made::started();
    made.see(9_000, What::Sent(renew));
    assert_eq!(made.clone().polled(10_000, Some(Told::Overdue)).violates(), [""; 0]);
    assert_eq!(
        made.clone().polled(9_999, Some(Told::Overdue)).violates(),
        ["stops"],
        "too early"
    );
    let mut changes = made.clone();
    changes
        .polled(10_000, Some(Told::Overdue))
        .polled(10_001, Some(Told::ShutDown));
    assert_eq!(changes.violates(), ["stops"], "twice");
    assert_eq!(
        made.clone().polled(9_500, Some(Told::Lost)).violates(),
        ["stops"],
        "no reason"
    );
    assert_eq!(
        made.clone().polled(9_500, Some(Told::ShutDown)).violates(),
        ["stops"],
        "no reason"
    );
    assert_eq!(
        made.clone().polled(9_500, Some(Told::TimeLimit)).violates(),
        ["stops"],
        "no reason"
    );
    assert_eq!(
        made.clone().polled(9_500, Some(Told::Other)).violates(),
        ["stops"],
        "no reason"
    );
    let mut untried = Made::started();
    untried.polled(10_000, Some(Told::Overdue));
    assert_eq!(untried.violates(), ["stops"], "no renewal is tried");
    let mut untold = made.clone();
    untold
        .answer(9_100, renew, Answer::Lost { evicted: true })
        .polled(9_100, None);
    assert_eq!(untold.violates(), ["stops"], "lost, and not told");
    let mut goes_on = made.clone();
    goes_on.answer(9_100, renew, Answer::Lost { evicted: false });
    assert_eq!(
        goes_on.polled(9_100, Some(Told::Lost)).violates(),
        ["stops"],
        "lost, and polled"
    );
    let how = Ended::Dropped(Told::Overdue);
    made.see(11_880, What::Returned { call: 50, how, at: T0 });
    assert_eq!(made.violates(), ["stops"], "dropped, and never told");
}

#[test]
fn stops_a_poll_beyond_the_time_limit_and_beyond_a_shutdowns_grace() {
    let held = Some(row(7, TOKEN, 0, 30_000));
    let mut made = Made::started();
    made.see(20_000, polled(7, TOKEN, 20_000, held, None));
    assert_eq!(made.violates(), [""; 0]);
    made.see(20_001, polled(7, TOKEN, 20_001, held, None));
    assert_eq!(made.violates(), ["stops"]);
    let mut made = Made::started();
    let kind = Kind::ShutDown(ms(100));
    made.see(
        1_000,
        What::Called {
            call: 51,
            lease: 1,
            kind,
            at: T0 + ms(1_000),
        },
    );
    made.polled(1_100, Some(Told::ShutDown));
    assert_eq!(made.violates(), [""; 0]);
    assert_eq!(made.polled(1_101, Some(Told::ShutDown)).violates(), ["stops"]);
}

//! Of what a tenure leaves behind: its row, its minimum, its calls, its clones.

use super::*;

#[test]
fn orphans_a_row_that_expires_while_nobody_releases_it() {
    let settled = What::Settled {
        rows: rows(Some(row(7, TOKEN, 0, 12_000))),
        now: us(60_000),
    };
    let mut made = Made::granted();
    assert_eq!(made.clone().see(60_000, settled.clone()).violates(), ["orphans"]);
    let mut crashed = made.clone();
    crashed.see(1_000, What::Crashed { pod: 1 });
    assert_eq!(crashed.see(60_000, settled.clone()).violates(), [""; 0]);
    // The first release fails at once; the next is due a second later.
    let mut once = made.clone();
    once.release(1_000)
        .answer(1_001, sent(99, Statement::Release, 7, 1_000), Answer::Unknown);
    assert_eq!(once.see(60_000, settled.clone()).violates(), ["orphans"]);
    made.release(11_500);
    assert_eq!(made.see(60_000, settled).violates(), [""; 0], "it is still under way");
}

#[test]
fn minimum_an_undo_that_keeps_one_and_a_release_that_forgets_it() {
    let options = Options::from(ms(12_000)).at_least_for(ms(5));
    let with_minimum = |made: &Made| {
        let mut made = made.clone();
        made.0.names = vec![Timing::new(&options).unwrap()];
        made
    };
    let mut release = sent(2, Statement::Release, 7, 1);
    let mut unused = with_minimum(&Made::granted());
    assert_eq!(unused.clone().see(1, What::Sent(release)).violates(), [""; 0]);
    let mut used = with_minimum(&Made::started());
    used.see(
        1,
        What::Gone {
            holder: 7,
            call: 50,
            at: T0,
        },
    );
    assert_eq!(used.clone().see(1, What::Sent(release)).violates(), ["minimum"]);
    release.at_least_for = 5_000;
    assert_eq!(used.see(1, What::Sent(release)).violates(), [""; 0]);
    assert_eq!(unused.see(1, What::Sent(release)).violates(), ["minimum"]);
}

#[test]
fn bounds_a_call_that_takes_too_long_or_never_returns() {
    let called = |kind| What::Called {
        call: 60,
        lease: 1,
        kind,
        at: T0,
    };
    let returned = |millis| What::Returned {
        call: 60,
        how: Ended::Skipped,
        at: T0 + ms(millis),
    };
    for (kind, bound) in [
        (Kind::TryAcquire, 5_000),
        (Kind::Run, 5_000),
        (Kind::Acquire(ms(700)), 5_700),
        (Kind::Release, 6_250),
        (Kind::ShutDown(ms(3_000)), 9_750),
    ] {
        let mut made = Made::new();
        made.see(0, called(kind));
        let in_time = made.clone().see(bound, returned(bound)).violates();
        assert_eq!(in_time, [""; 0], "{kind:?}");
        let mut stood = made.clone();
        stood.see(1, What::Stands { pod: 1 }).see(2, What::GoesOn { pod: 1 });
        assert_eq!(stood.see(60_000, returned(60_000)).violates(), [""; 0], "{kind:?}");
        let late = made.clone().see(bound + 11, returned(bound + 11)).violates();
        assert_eq!(late, ["bounds"], "{kind:?}");
        assert_eq!(
            made.see(60_000, What::Over).violates(),
            ["bounds"],
            "{kind:?} never returns"
        );
    }
}

#[test]
fn recovery_a_row_that_is_not_free_and_a_lease_that_cannot_be_taken() {
    let mut made = Made::started();
    let settled = |to| What::Settled {
        rows: rows(Some(row(7, TOKEN, 0, to))),
        now: us(60_000),
    };
    assert_eq!(made.clone().see(60_000, settled(60_000)).violates(), [""; 0]);
    assert_eq!(made.see(60_000, settled(60_001)).violates(), ["recovery"]);
    let mut made = Made::new();
    made.see(
        0,
        What::Called {
            call: 60,
            lease: 1,
            kind: Kind::Probe(ms(1)),
            at: T0,
        },
    );
    made.see(
        1,
        What::Returned {
            call: 60,
            how: Ended::Skipped,
            at: T0,
        },
    );
    assert_eq!(made.violates(), ["recovery"]);
}

#[test]
fn clones_one_that_says_yes_when_the_row_is_not_its_own_or_after_it_said_no() {
    let claimed = |live, row| {
        let (holder, token, now) = (7, TOKEN, us(1_000));
        What::Claimed(Box::new(Claimed {
            holder,
            token,
            live,
            row,
            now,
        }))
    };
    let (own, expired) = (row(7, TOKEN, 0, 12_000), row(7, TOKEN, 0, 1_000));
    let mut made = Made::granted();
    made.see(1_000, claimed(true, Some(own)));
    assert_eq!(made.violates(), [""; 0]);
    for wrong in [None, Some(expired), Some(row(8, TOKEN + 1, 0, 12_000))] {
        assert_eq!(made.clone().see(1_000, claimed(false, wrong)).violates(), [""; 0]);
        assert_eq!(made.clone().see(1_000, claimed(true, wrong)).violates(), ["clones"]);
    }
    made.see(1_000, claimed(false, Some(own)))
        .see(1_001, claimed(true, Some(own)));
    assert_eq!(made.violates(), ["clones"]);
}

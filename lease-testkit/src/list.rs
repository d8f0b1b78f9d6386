//! The list of all cases: the tests, [`CASES`] and the docs are made from it.

use crate::{Harness, run_case};

/// Every case once, by group: its name, the law it tests, what it grew out of, and what it says.
///
/// `$then` gets `$args`, the group, and the group's cases.
#[doc(hidden)]
#[macro_export]
macro_rules! __cases {
    (basic => [$($then:tt)+], $args:tt) => {
        $($then)+! { $args basic
            live_lease_is_busy_for_others: "L1", "", "A live lease is busy for every other holder.";
            busy_names_the_incumbent: "L1", "", "A loser is told who holds the lease and for how long yet.";
            equal_labels_exclude_each_other: "L1", "C3", "Two pods with equal labels exclude each other.";
            expired_lease_is_taken_over: "L1", "", "A lease is free from `expires_at` on, to the microsecond.";
            lease_is_held_for_its_whole_ttl: "L1", "", "A lease is held until its ttl is over.";
            ttl_keeps_its_fraction_of_a_second: "L6", "C17", "A ttl is not cut to seconds.";
            longest_ttl_is_held_and_ends: "L6", "", "The longest ttl, 30 days, does not overflow.";
            released_lease_is_free_at_once: "L4", "", "A released lease without a minimum is free at once.";
            retry_is_granted_again:
                "L1", "C51", "A repeated try of the holder is granted, once more and with its token.";
            retry_extends: "L2", "", "A retry extends to a ttl from now.";
            retry_with_a_shorter_ttl_never_shortens: "L2", "", "A retry never shortens.";
            acquire_leaves_other_rows_alone: "L5", "C1", "An acquire touches the row of its name only.";
            many_names_do_not_block_each_other: "L5", "C6", "A thousand names are held side by side and all released.";
        }
    };
    (renewal => [$($then:tt)+], $args:tt) => {
        $($then)+! { $args renewal
            renewal_extends_from_now: "L3", "", "A renewal extends to a ttl from now.";
            renewals_do_not_add_up: "L3", "C31", "Ten renewals leave no more than one ttl.";
            renewal_with_a_shorter_ttl_never_shortens: "L3", "", "A renewal never shortens.";
            renewal_keeps_the_token: "L2", "", "A renewal keeps the token.";
            renewal_keeps_acquired_at: "L2", "", "A renewal keeps `acquired_at`, from which the minimum counts.";
            expired_lease_is_lost_though_nobody_took_it:
                "L3", "C32", "An expired lease is lost even if nobody took it.";
            loss_names_the_successor: "L3", "", "Who lost a lease is told who has it now.";
            renewal_by_another_changes_nothing: "L3", "", "A renewal by another holder neither extends nor takes.";
            renewal_without_a_row_is_gone: "L3", "", "A renewal without a row is `Gone`, and makes none.";
            renewal_leaves_other_rows_alone: "L5", "C1", "A renewal touches the row of its name only.";
            renew_all_answers_in_the_order_of_its_claims:
                "L3", "", "`renew_all` answers for each claim, in their order.";
        }
    };
    (release => [$($then:tt)+], $args:tt) => {
        $($then)+! { $args release
            release_by_another_is_not_held: "L4", "", "A release by another holder frees nothing.";
            late_release_leaves_the_successor: "L4", "C2", "A release after a takeover leaves the successor's row.";
            late_undo_leaves_the_next_tenure: "L4", "C44", "An undo that runs late leaves the next tenure's row.";
            second_release_is_not_held: "L4", "C43", "A second release is `NotHeld` and changes nothing.";
            release_without_a_row_is_not_held: "L4", "", "A release without a row is `NotHeld`, and makes none.";
            release_leaves_other_rows_alone: "L5", "C1", "A release touches the row of its name only.";
            minimum_keeps_others_out_after_a_release: "L4", "C14", "A minimum keeps others out after the release.";
            minimum_counts_from_the_grant: "L4", "", "The minimum counts from the grant, not from the release.";
            minimum_counts_from_the_own_grant_after_a_takeover:
                "L4", "", "The minimum of a takeover counts from its own grant.";
            minimum_that_is_over_frees_at_once: "L4", "", "A release after its minimum frees at once.";
            minimum_may_exceed_the_ttl: "L4", "", "A minimum longer than the ttl holds.";
            renewal_after_a_release_is_lost: "L3", "C43", "A late renewal of a released lease is `Lost(Released)`.";
            released_row_says_so_when_free: "L3", "", "Who released is told so, also when the row is free.";
            late_duplicate_of_an_acquire_is_busy_after_the_release:
                "L1", "C43", "A late duplicate of an acquire is busy while its release waits out the minimum.";
            release_never_raises_an_expired_row: "L4", "", "A release after expiry never brings the row to life again.";
            grant_clears_the_release: "L1", "", "A takeover does not inherit the release before.";
        }
    };
    (fencing => [$($then:tt)+], $args:tt) => {
        $($then)+! { $args fencing
            first_token_is_the_clock: "L2", "C35", "The first token is the store's clock in microseconds.";
            token_grows_on_takeover: "L2", "C35", "A takeover has a greater token.";
            token_grows_after_release: "L2", "C35", "A grant after a release has a greater token.";
            token_grows_for_the_same_holder_after_expiry:
                "L2", "", "After expiry, the same holder's acquire is no retry.";
            token_grows_when_the_clock_stepped_back: "L2", "C35", "Tokens grow though the store's clock stepped back.";
            token_grows_over_every_kind_of_end: "L2", "C35", "Tokens grow over releases, expiries and minimums.";
            retry_keeps_the_token: "L2", "C51", "A retry keeps the token.";
            retry_keeps_acquired_at: "L2", "C51", "A retry keeps `acquired_at`, from which the minimum counts.";
            parallel_retries_share_one_token: "L2", "C51", "Retries that run at once share one token.";
            tokens_grow_under_contention: "L2", "C35", "Tokens grow in the order of the tenures, among eight clients.";
        }
    };
    (contention => [$($then:tt)+], $args:tt) => {
        $($then)+! { $args contention
            one_of_many_wins_an_absent_row: "L9", "C8", "Of 16 clients at once, one is granted a lease without a row.";
            one_of_many_wins_an_expired_row: "L9", "", "Of 16 clients at once, one is granted an expired lease.";
            one_of_many_wins_a_released_row: "L9", "", "Of 16 clients at once, one is granted a released lease.";
            counter_is_exact:
                "L9", "C7", "Eight clients add to a counter under the lease, and none of 200 steps is lost.";
            holder_keeps_its_lease_among_contenders:
                "L9", "", "A holder renews among seven contenders, who are refused.";
            release_wins_over_a_renewal_in_flight: "L4", "C30", "A release and a renewal at once: the release stands.";
            unrelated_names_do_not_wait_for_each_other:
                "L9", "C6", "Clients of different names never refuse each other.";
        }
    };
    (names => [$($then:tt)+], $args:tt) => {
        $($then)+! { $args names
            case_is_kept: "L7", "C25", "Names that differ in case are different leases.";
            accents_are_kept: "L7", "C25", "Names that differ in accents or their encoding are different leases.";
            look_alikes_are_distinct:
                "L7", "C25", "Names that differ in inner spaces, widths or final dots are different leases.";
            longest_names_are_whole:
                "L7", "C25", "Names of 128 bytes, in letters or emoji, are told apart to the last byte.";
            hostile_names_are_only_names: "L7", "", "Quotes, SQL, patterns and placeholders in names mean nothing.";
            hostile_holders_are_shown_as_they_are:
                "L7", "", "A holder of 128 bytes, or of quotes and emoji, is shown as it is.";
            holders_are_compared_byte_for_byte: "L7", "", "Holders are compared byte for byte.";
        }
    };
    (inspect => [$($then:tt)+], $args:tt) => {
        $($then)+! { $args inspect
            row_shows_the_grant: "Inspect", "", "A row shows holder, token and times of its grant.";
            list_shows_every_row_by_name: "Inspect", "", "`list` shows every row, in the order of the names' bytes.";
            row_shows_the_release:
                "L4", "", "A released row keeps holder, token and `acquired_at`, and expires with its minimum.";
            row_keeps_its_grant_over_renewals_and_retries:
                "L2", "C51", "Renewals and retries keep token and `acquired_at`.";
            refused_operations_leave_the_row_as_it_is:
                "L4", "C2", "Acquire, renew and release that are refused change nothing.";
            operations_leave_other_rows_as_they_are: "L5", "C1", "No operation changes another row.";
            evicted_holder_is_told_and_nobody_starts_early:
                "Inspect", "C47", "The evicted holder is told, and nobody starts before its time is over.";
            evicted_holder_can_neither_renew_nor_release:
                "Inspect", "C47", "A renewal or a release does not undo an eviction.";
            eviction_has_a_greater_token_and_a_reason:
                "Inspect", "C35", "An eviction has the next token and keeps its reason.";
            eviction_takes_only_what_is_live: "Inspect", "", "A lease that nobody holds is not evicted.";
            evict_now_frees_at_once: "Inspect", "", "`evict_now` frees at once, with the order of tokens kept.";
            token_grows_over_an_eviction_after_the_clock_stepped_back:
                "L2", "C35", "A token ahead of the clock is exceeded all the same.";
            grant_clears_the_note: "L1", "", "A takeover does not inherit the note before.";
            pause_keeps_everybody_off:
                "Inspect", "", "A pause keeps everybody off for its time, also where there was no row.";
            pause_displaces_the_holder: "Inspect", "C47", "A paused holder is told, and its time is waited out.";
            resume_frees_a_lease_that_was_free:
                "Inspect", "", "A resume ends the pause at once where nobody was displaced.";
            resume_waits_for_the_displaced_holder:
                "Inspect", "C47", "A resume never frees before the displaced holder's time is over.";
            second_pause_replaces_the_first: "Inspect", "", "A second pause replaces the first, and may be shorter.";
            second_pause_remembers_the_displaced_holder:
                "Inspect", "C47", "A second pause never forgets the displaced holder's time.";
            resume_ends_only_a_pause: "Inspect", "", "A resume frees neither a held nor an evicted lease.";
            purge_deletes_what_is_old:
                "Inspect", "", "A purge deletes rows that expired long enough ago, and no others.";
            purge_keeps_a_token_ahead_of_the_clock:
                "Inspect", "C35", "A purge keeps rows whose token is ahead of the clock.";
            purge_keeps_a_row_that_was_held_within_a_minute:
                "Inspect", "C54", "A purge keeps what was held within a minute, whatever age it is given.";
            purge_races_contenders:
                "Inspect", "C54", "A purge among eight clients breaks neither exclusion nor the order of tokens.";
        }
    };
}

/// One behaviour that every backend has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Case {
    /// The group, as [`conformance!`](crate::conformance) takes it.
    pub group: &'static str,
    /// The name of the test.
    pub name: &'static str,
    /// The law of [`Repo`](lease_core::Repo) it tests, or `Inspect`.
    pub law: &'static str,
    /// Which collected bug report it keeps from coming back, such as `C3`; empty if none.
    pub bug: &'static str,
    /// What it says, in a sentence.
    pub says: &'static str,
}

/// A case that can be run on a harness.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Runner {
    /// Which case.
    pub case: Case,
    /// Runs it. It panics when the backend breaks the law.
    pub run: fn(),
}

macro_rules! table {
    ([] $group:ident $($name:ident: $law:literal, $bug:literal, $says:literal;)*) => {
        &[$(Case { group: stringify!($group), name: stringify!($name), law: $law, bug: $bug, says: $says }),*]
    };
}

macro_rules! page {
    ([] $group:ident $($name:ident: $law:literal, $bug:literal, $says:literal;)*) => {
        concat!("\n# ", stringify!($group), "\n", $("- `", stringify!($name), "` (", $law, "): ", $says, "\n"),*)
    };
}

macro_rules! runners {
    ([$harness:ident] $group:ident $($name:ident: $law:literal, $bug:literal, $says:literal;)*) => {
        vec![$(Runner {
            case: Case { group: stringify!($group), name: stringify!($name), law: $law, bug: $bug, says: $says },
            run: || run_case::<$harness>(async |store| crate::cases::$group::$name(store).await),
        }),*]
    };
}

macro_rules! all_groups {
    ($then:tt, $args:tt) => {
        [
            __cases!(basic => $then, $args),
            __cases!(renewal => $then, $args),
            __cases!(release => $then, $args),
            __cases!(fencing => $then, $args),
            __cases!(contention => $then, $args),
            __cases!(names => $then, $args),
            __cases!(inspect => $then, $args),
        ]
    };
}

const GROUPS: [&[Case]; 7] = all_groups!([table], []);

/// Every case of every group, in the order of the list.
#[doc = __cases!(basic => [page], [])]
#[doc = __cases!(renewal => [page], [])]
#[doc = __cases!(release => [page], [])]
#[doc = __cases!(fencing => [page], [])]
#[doc = __cases!(contention => [page], [])]
#[doc = __cases!(names => [page], [])]
#[doc = __cases!(inspect => [page], [])]
pub const CASES: &[Case] = &flat(GROUPS);

const COUNT: usize = {
    let mut count = 0;
    let mut group = 0;
    while group < GROUPS.len() {
        count += GROUPS[group].len();
        group += 1;
    }
    count
};

const fn flat(groups: [&[Case]; 7]) -> [Case; COUNT] {
    let mut all = [Case {
        group: "",
        name: "",
        law: "",
        bug: "",
        says: "",
    }; COUNT];
    let (mut group, mut at) = (0, 0);
    while group < groups.len() {
        let mut index = 0;
        while index < groups[group].len() {
            all[at] = groups[group][index];
            index += 1;
            at += 1;
        }
        group += 1;
    }
    all
}

/// Every case as a function, for a program that runs the suite without `#[test]`, such as a table of mutants.
#[must_use]
pub fn runners<H: Harness>() -> Vec<Runner>
where
    H::Repo: lease_core::Inspect,
{
    all_groups!([runners], [H]).concat()
}

//! [`Check`]: whether two worked at once; and the fence, a place to write to that refuses stale tokens.

use lease_core::Moment;

use super::said::{Said, What};

/// What is known of who worked when.
#[derive(Debug, Default)]
pub(super) struct Check {
    stays: Vec<Stay>,
    greatest: i64,
    refused: usize,
}

/// One tenure's work: from the first to the last poll of its f, as it read the clock in it.
#[derive(Debug)]
struct Stay {
    pod: usize,
    token: i64,
    enter: Moment,
    leave: Moment,
}

impl Check {
    /// Takes note. False for a write that is refused.
    pub(super) fn takes(&mut self, said: &Said) -> bool {
        match said.what {
            What::Works | What::Steps => {
                let (pod, token, at) = (said.pod, said.token, said.at);
                match self
                    .stays
                    .iter_mut()
                    .find(|stay| (stay.pod, stay.token) == (pod, token))
                {
                    Some(stay) => stay.leave = stay.leave.max(at),
                    None => self.stays.push(Stay {
                        pod,
                        token,
                        enter: at,
                        leave: at,
                    }),
                }
            }
            What::Writes if said.token < self.greatest => {
                self.refused += 1;
                return false;
            }
            What::Writes => self.greatest = said.token,
            _ => {}
        }
        true
    }

    pub(super) fn tenures(&self) -> usize {
        self.stays.len()
    }

    /// How many writes came with a token smaller than one that had been seen.
    pub(super) fn refused(&self) -> usize {
        self.refused
    }

    /// How many pairs of tenures worked at the same time.
    pub(super) fn overlaps(&self) -> usize {
        let after = |at: usize| &self.stays[at + 1..];
        let overlap = |one: &Stay, other: &Stay| one.enter <= other.leave && other.enter <= one.leave;
        let stays = self.stays.iter().enumerate();
        stays
            .map(|(at, one)| after(at).iter().filter(|other| overlap(one, other)).count())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lines: &[(usize, What, i64, u64)]) -> (Check, Vec<bool>) {
        let mut check = Check::default();
        let taken = lines.iter().map(|&(pod, what, token, at)| {
            let at = Moment::from_nanos(at);
            check.takes(&Said { pod, what, token, at })
        });
        let taken = taken.collect();
        (check, taken)
    }

    #[test]
    fn a_late_write_is_refused_and_is_no_overlap() {
        let (check, taken) = seen(&[
            (0, What::Works, 5, 10),
            (0, What::Writes, 5, 11),
            (0, What::Steps, 5, 20),
            (1, What::Works, 6, 30),
            (1, What::Writes, 6, 35),
            (0, What::Writes, 5, 36),
            (1, What::Writes, 6, 37),
        ]);
        assert_eq!(taken, [true, true, true, true, true, false, true]);
        assert_eq!((check.refused(), check.overlaps(), check.tenures()), (1, 0, 2));
    }

    #[test]
    fn a_poll_beside_another_is_an_overlap_in_whatever_order_it_is_told() {
        let late = (0, What::Steps, 5, 31);
        for lines in [
            [(0, What::Works, 5, 10), (1, What::Works, 6, 30), late],
            [(0, What::Works, 5, 10), late, (1, What::Works, 6, 30)],
            [(1, What::Works, 6, 30), (0, What::Works, 5, 10), late],
        ] {
            assert_eq!(seen(&lines).0.overlaps(), 1, "{lines:?}");
        }
    }
}

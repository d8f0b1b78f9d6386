//! [`Dice`]: all chance of a world comes from its seed, through these.

use std::ops::RangeInclusive;

/// A stream of random numbers. Whole numbers only, so that every machine draws the same.
#[derive(Debug, Clone)]
pub struct Dice(fastrand::Rng);

impl Dice {
    /// The stream of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// A stream of its own.
    pub fn fork(&mut self) -> Self {
        Self(self.0.fork())
    }

    /// Any of these numbers.
    pub fn between(&mut self, range: RangeInclusive<u64>) -> u64 {
        self.0.u64(range)
    }

    /// Any of the numbers up to `most`, each order of magnitude as likely as the next: short delays and long ones.
    pub fn spread(&mut self, most: u64) -> u64 {
        let magnitudes = u64::BITS - most.max(1).leading_zeros();
        let most = (most >> self.0.u32(0..magnitudes.min(8))).max(1);
        self.0.u64(most / 2..=most)
    }

    /// True so many times in a thousand.
    pub fn chance(&mut self, in_thousand: u64) -> bool {
        self.0.u64(0..1_000) < in_thousand
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.usize(0..choices.len())]
    }

    /// Puts them into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}

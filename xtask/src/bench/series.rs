//! [`Series`]: one figure, taken several times.

use serde_json::{Value, json};

/// Values in the order in which they were taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Series(Vec<f64>);

impl Series {
    pub(super) fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Run for run, for those that both have taken: it divided by the other.
    pub(super) fn over(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, other)| one / other).collect())
    }

    /// The median, or nothing where there is no value.
    pub(super) fn median(&self) -> Option<f64> {
        let sorted = self.sorted();
        let last = sorted.len().checked_sub(1)?;
        Some(f64::midpoint(sorted[last / 2], sorted[sorted.len() / 2]))
    }

    pub(super) fn least(&self) -> Option<f64> {
        self.sorted().first().copied()
    }

    pub(super) fn most(&self) -> Option<f64> {
        self.sorted().last().copied()
    }

    /// As tables have it: `6,143 (5,900–6,310)`.
    pub(super) fn shown(&self, decimals: usize) -> String {
        match (self.median(), self.least(), self.most()) {
            (Some(median), Some(least), Some(most)) if self.0.len() > 1 => format!(
                "{} ({}–{})",
                number(median, decimals),
                number(least, decimals),
                number(most, decimals)
            ),
            (Some(median), ..) => number(median, decimals),
            _ => "–".to_owned(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!(self.0)
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    }
}

impl FromIterator<f64> for Series {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// With thousands apart.
pub(super) fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text
        .split_once('.')
        .map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        let left = whole.len() - at;
        if at > 0 && left % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match rest {
        Some(rest) => format!("{grouped}.{rest}"),
        None => grouped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64]) -> Series {
        values.iter().copied().collect()
    }

    #[test]
    fn thousands_are_apart() {
        for (value, decimals, text) in [
            (0.0, 0, "0"),
            (999.0, 0, "999"),
            (1_000.0, 0, "1,000"),
            (-123_456.0, 0, "-123,456"),
            (1_234_567.891, 2, "1,234,567.89"),
        ] {
            assert_eq!(number(value, decimals), text);
        }
    }

    #[test]
    fn median_least_and_most_are_shown() {
        assert_eq!(series(&[3.0, 1.0, 2.0]).shown(0), "2 (1–3)");
        assert_eq!(series(&[4.0, 1.0, 2.0, 3.0]).shown(1), "2.5 (1.0–4.0)");
        assert_eq!(series(&[7.0]).shown(0), "7");
        assert_eq!(series(&[]).shown(0), "–");
    }

    #[test]
    fn ratios_are_those_of_the_same_round() {
        let ratio = series(&[2.0, 9.0]).over(&series(&[1.0, 3.0]));
        assert_eq!(ratio.shown(1), "2.5 (2.0–3.0)");
    }
}

//! Medians, and figures as they are shown.

use serde_json::{Value, json};

/// The middle of values, which are sorted by it.
///
/// # Panics
/// Without a value.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

pub(super) fn hundredths(value: f64) -> Value {
    json!((value * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert!((median(&mut [9.0, 2.0, 4.0, 1.0]) - 3.0).abs() < f64::EPSILON);
        assert!((median(&mut [4.0, 2.0, 1.0]) - 2.0).abs() < f64::EPSILON);
    }
}

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

/// Between which of sorted values the median of all that could be measured lies, with a confidence of at least 95 %: by how often so
/// many of them lie on one side of it, whatever their distribution. All of them, where they are fewer than six.
///
/// # Panics
/// Without a value.
pub(super) fn interval(sorted: &[f64]) -> (f64, f64) {
    let mut cut = 0;
    let mut ways = 1.0;
    let mut beyond = 0.0;
    for (count, _) in sorted.iter().enumerate() {
        // So many on one side, out of all ways in which they could fall.
        #[expect(clippy::cast_precision_loss, reason = "they are few")]
        let (n, k) = (sorted.len() as f64, count as f64);
        beyond += ways / 2.0_f64.powf(n);
        if beyond > 0.025 {
            break;
        }
        cut = count + 1;
        ways *= (n - k) / (k + 1.0);
    }
    // `cut` values lie outside on each side, less the one that the interval begins with.
    let cut = cut.saturating_sub(1);
    (sorted[cut], sorted[sorted.len() - 1 - cut])
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

    /// The ranks that tables of the sign test have.
    #[test]
    fn the_interval_of_twenty_is_from_the_sixth_to_the_fifteenth() {
        for (count, ranks) in [
            (1, (1.0, 1.0)),
            (5, (1.0, 5.0)),
            (6, (1.0, 6.0)),
            (9, (2.0, 8.0)),
            (20, (6.0, 15.0)),
            (30, (10.0, 21.0)),
        ] {
            let sorted: Vec<f64> = (1..=count).map(f64::from).collect();
            assert_eq!(interval(&sorted), ranks, "of {count}");
        }
    }
}

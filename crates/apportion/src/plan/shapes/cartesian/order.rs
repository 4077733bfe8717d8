//! Orders that do not depend on rounding: values that are equal but for rounding form a class.

use crate::plan::Shape;

/// The smallest relative difference that counts, for weights that are real numbers.
const REAL: f64 = 1e-9;

/// The largest relative difference that is attributed to rounding.
const ROUNDED: f64 = 1e-3;

/// Relative difference up to which two weights, or two finishing times, count as equal. Weights that are
/// whole numbers of elements of C are right to one element.
pub(super) fn equality(shape: Shape, weights: &[f64]) -> f64 {
    let counted =
        weights.iter().all(|w| w.fract() == 0.0) && weights.iter().sum::<f64>() == shape.elements() as f64;
    if !counted {
        return REAL;
    }
    let least = weights.iter().copied().filter(|w| *w > 0.0).fold(f64::INFINITY, f64::min);
    (2.0 / least).clamp(REAL, ROUNDED)
}

/// Puts the members of each class (neighbours in an order of descending values that differ by less than a
/// fraction `equal` from the class's first) into the order of their keys.
pub(super) fn classes<K: Ord>(
    mut descending: Vec<usize>,
    value: impl Fn(usize) -> f64,
    equal: f64,
    key: impl Fn(&usize) -> K,
) -> Vec<usize> {
    let mut start = 0;
    while start < descending.len() {
        let least = value(descending[start]) * (1.0 - equal);
        let length = descending[start..].iter().take_while(|&&i| value(i) >= least).count().max(1);
        descending[start..start + length].sort_by_key(&key);
        start += length;
    }
    descending
}

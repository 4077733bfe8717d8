//! How much of a difference between measured times noise explains. Ranks that decide by equal times must
//! agree: only operations that IEEE 754 rounds exactly.

/// Assumed relative standard deviation of one time, until times have been repeated.
pub const UNKNOWN_NOISE: f64 = 0.05;

/// Standard error of a median relative to that of a mean.
const MEDIAN: f64 = 1.25;

/// The relative standard deviation of repeated times, by the median of the relative differences of successive
/// ones; `None` if there are none.
pub fn noise(differences: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = differences.collect();
    all.sort_by(f64::total_cmp);
    // The median of the distance of two normal values is 0.954 standard deviations.
    all.get(all.len() / 2).map(|median| median / 0.954)
}

/// The gain, as a fraction of the time with it, that noise alone could suggest to `processors` processors,
/// each known by the median of `rounds` times: `deviations` standard errors beyond the largest by chance.
pub fn doubt(deviations: f64, processors: usize, noise: f64, rounds: usize) -> f64 {
    // An upper bound of the natural logarithm that every machine computes alike.
    let logarithm = f64::from(processors.next_power_of_two().ilog2()) * std::f64::consts::LN_2;
    (deviations + (2.0 * logarithm).sqrt()) * MEDIAN * noise / (rounds as f64).sqrt()
}

/// The relative difference of two positive times.
pub fn difference(one: f64, other: f64) -> f64 {
    2.0 * (one - other).abs() / (one + other)
}

/// Appends, and keeps the last `most`.
pub fn push<T>(list: &mut Vec<T>, new: T, most: usize) {
    list.push(new);
    list.drain(..list.len().saturating_sub(most));
}

/// The lower median: of two times the shorter, since disturbances only slow down.
///
/// # Panics
/// If there are none.
pub fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() - 1) / 2]
}

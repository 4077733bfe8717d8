//! Is C really the product of A and B, over any semiring? Answered by recomputing a sample of its elements.
//!
//! Freivalds' check needs subtraction, which max-plus, min-plus and or-and have not.

use crate::error::{Error, Result};
use crate::matrix::{Element, Matrix};
use crate::verify::freivalds::{SplitMix64, check_shapes};

/// What a passed check by samples means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    /// Elements recomputed; those drawn twice count twice.
    pub elements: u64,
    /// Those of them that were drawn independently and uniformly from all of C.
    pub drawn: u64,
    /// True if every element of C was recomputed: then nothing was missed.
    pub all: bool,
}

impl Sampled {
    /// The chance, at most, that the check passes though a `fraction` of C's elements is wrong: (1 - fraction)^drawn,
    /// and 0 if all were recomputed. It says nothing of fewer wrong elements: a single one among n is missed with
    /// probability (1 - 1 / n)^drawn.
    pub fn error_probability(&self, fraction: f64) -> f64 {
        if self.all { 0.0 } else { (1.0 - fraction.clamp(0.0, 1.0)).powf(self.drawn as f64) }
    }
}

/// Recomputes elements of C = A B, each by `entry` from a row of A and a column of B, and compares exactly: `draws`
/// elements drawn independently and uniformly, and one of every row and of every column, so that a row or a column that
/// is wrong throughout is found for certain. A C of at most `draws` elements is recomputed whole. NaN equals NaN.
///
/// Exact where `entry` rounds as the product does, whatever its order: over max-plus, min-plus and or-and, where every
/// candidate is a single sum. The same seed draws the same elements. Time O((draws + m + n) k), memory O(draws + m + n + k).
///
/// # Errors
/// [`Error::WrongResult`] names the first wrong element found, with both values; [`Error::Input`] if the shapes do not fit.
pub fn verify_sampled<T: Element>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    c: &Matrix<T>,
    entry: impl Fn(&[T], &[T]) -> T,
    budget: (u64, u64),
) -> Result<Sampled> {
    verify_sampled_at((a, b, c), |row, column, _| entry(row, column), budget)
}

/// [`verify_sampled`] where an element depends on its place too: `entry` takes its row of A, its column of B, and the two indices.
///
/// # Errors
/// As [`verify_sampled`].
pub fn verify_sampled_at<T: Element>(
    (a, b, c): (&Matrix<T>, &Matrix<T>, &Matrix<T>),
    entry: impl Fn(&[T], &[T], (usize, usize)) -> T,
    (draws, seed): (u64, u64),
) -> Result<Sampled> {
    check_shapes(a, b, c, None)?;
    let (m, n) = (c.rows(), c.cols());
    let all = (m as u64).saturating_mul(n as u64) <= draws;
    // By column, so that each column of B is gathered once.
    let mut places: Vec<(usize, usize)> = if all {
        (0..n).flat_map(|j| (0..m).map(move |i| (j, i))).collect()
    } else {
        let mut random = SplitMix64(seed);
        let mut places: Vec<_> = (0..draws).map(|_| (random.below(n), random.below(m))).collect();
        places.extend((0..m).map(|i| (random.below(n), i)));
        places.extend((0..n).map(|j| (j, random.below(m))));
        places
    };
    places.sort_unstable();
    let mut column: Vec<T> = Vec::new();
    let mut gathered = None;
    for &(j, i) in &places {
        if gathered != Some(j) {
            column.clear();
            column.extend((0..b.rows()).map(|p| b.row(p)[j]));
            gathered = Some(j);
        }
        let (seen, wanted) = (c.row(i)[j], entry(a.row(i), &column, (i, j)));
        let both_nan = seen.to_f64().is_nan() && wanted.to_f64().is_nan();
        if seen != wanted && !both_nan {
            let what = format!("element ({i}, {j}), counted from 0, is {seen} and should be {wanted}");
            return Err(Error::WrongResult { what });
        }
    }
    Ok(Sampled { elements: places.len() as u64, drawn: if all { 0 } else { draws }, all })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn least(row: &[f64], column: &[f64]) -> f64 {
        row.iter().zip(column).fold(f64::INFINITY, |least, (x, y)| least.min(x + y))
    }

    fn product(m: usize, k: usize, n: usize) -> [Matrix<f64>; 3] {
        let fill = |rows: usize, cols: usize, by: usize| {
            Matrix::new(rows, cols, (0..rows * cols).map(|i| (i * by % 101) as f64 / 7.0).collect())
        };
        let (a, b) = (fill(m, k, 37), fill(k, n, 59));
        let mut c = Matrix::zeros(m, n);
        for (i, j) in (0..m * n).map(|at| (at / n, at % n)) {
            let column: Vec<f64> = (0..k).map(|p| b.row(p)[j]).collect();
            c.as_mut_slice()[i * n + j] = least(a.row(i), &column);
        }
        [a, b, c]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// A small product is recomputed whole: one wrong element anywhere is found and named, by its last bit.
        #[test]
        fn every_single_error_in_a_small_product_is_found(
            m in 1usize..9, k in 1usize..9, n in 1usize..9, at in any::<prop::sample::Index>(), seed: u64,
        ) {
            let [a, b, mut c] = product(m, k, n);
            let passed = verify_sampled(&a, &b, &c, least, (64, seed)).unwrap();
            prop_assert_eq!(passed, Sampled { elements: (m * n) as u64, drawn: 0, all: true });
            prop_assert_eq!(passed.error_probability(1e-9), 0.0);
            let at = at.index(m * n);
            let wrong = &mut c.as_mut_slice()[at];
            *wrong = f64::from_bits(wrong.to_bits() ^ 1);
            let error = verify_sampled(&a, &b, &c, least, (64, seed)).unwrap_err();
            let place = format!("element ({}, {})", at / n, at % n);
            prop_assert!(error.to_string().contains(&place), "{}", error);
        }

        /// A whole row or column is found with no luck at all.
        #[test]
        fn a_wrong_row_or_column_is_found_for_certain(line in 0usize..30, row: bool, seed: u64) {
            let [a, b, mut c] = product(30, 3, 30);
            for x in 0..30 {
                let at = if row { line * 30 + x } else { x * 30 + line };
                c.as_mut_slice()[at] += 1.0;
            }
            prop_assert!(verify_sampled(&a, &b, &c, least, (0, seed)).is_err());
        }
    }

    /// Misses over many seeds are as rare as the odds say: 30 of 900 elements wrong, 20 draws alone would miss half.
    #[test]
    fn misses_are_no_more_frequent_than_stated() {
        let [a, b, mut c] = product(30, 2, 30);
        (0..30).for_each(|i| c.as_mut_slice()[i * 31] += 1.0);
        let missed = (0..400).filter(|&seed| verify_sampled(&a, &b, &c, least, (20, seed)).is_ok()).count();
        let odds = Sampled { elements: 80, drawn: 20, all: false }.error_probability(30.0 / 900.0);
        assert!((odds - 0.5076).abs() < 1e-3);
        assert!((missed as f64) < 400.0 * odds, "{missed} of 400");
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let [a, b, _] = product(2, 3, 4);
        let error = verify_sampled(&a, &b, &Matrix::zeros(2, 5), least, (9, 1)).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}

//! All paths of any length: the closure I + A + A^2 + … over a semiring.

use super::power::{checked, from_bits, to_bits};
use super::{BitMatrix, Semiring, Tropical, View, ViewMut, max_plus, min_plus};
use crate::error::{Error, Result};
use std::ops::Range;

/// Vertices that are passed through together.
pub(super) const BAND: usize = 64;

/// The closure of a square matrix, row by row: for each pair the best path (over or-and: whether there is one),
/// where each vertex reaches itself by the empty path.
///
/// Over max-plus and min-plus: Floyd and Warshall, 64 vertices at a time, 2 n^3 operations at the speed of
/// [`max_plus`]. Over or-and: squaring until nothing changes; any element but 0 is true.
///
/// Source: Floyd 1962 (Algorithm 97), Warshall 1962; blocks as in Venkataraman, Sahni and Mukhopadhyaya 2003.
///
/// # Errors
/// If the matrix is not square, has an element that the semiring does not take, or a cycle that improves for
/// ever (negative over min-plus, positive over max-plus; floats round, so a cycle whose decimals add up to 0
/// may show as one). Over plus-times there is none.
///
/// # Example
/// ```
/// use apportion::kernels::{Semiring, View, closure};
/// let far = i32::MAX;
/// let a = [0, 4, far, far, 0, 5, 1, far, 0];
/// let shortest = closure(View::dense(&a, 3, 3), Semiring::MinPlus).unwrap();
/// assert_eq!(shortest, [0, 4, 9, 6, 0, 5, 1, 5, 0]);
/// ```
pub fn closure<T: Tropical>(a: View<T>, semiring: Semiring) -> Result<Vec<T>> {
    let elements = checked(a, semiring)?;
    match semiring {
        Semiring::PlusTimes => Err(Error::input(
            "semiring",
            "plus-times has no closure by paths",
            "choose max-plus, min-plus or or-and",
        )),
        Semiring::MaxPlus => best_paths::<T, false>(elements, a.rows()),
        Semiring::MinPlus => best_paths::<T, true>(elements, a.rows()),
        Semiring::OrAnd => Ok(from_bits(&to_bits(a).closure())),
    }
}

fn best_paths<T: Tropical, const MIN: bool>(mut d: Vec<T>, n: usize) -> Result<Vec<T>> {
    let product = if MIN { min_plus::<T> } else { max_plus::<T> };
    start::<T, MIN>(&mut d, n)?;
    for band in bands(n) {
        let b = band.len();
        let mut middle = copy(&d, n, &band, &band);
        pass_through::<T, MIN>(&mut middle, b);
        let middle = View::dense(&middle, b, b);
        let rows = copy(&d, n, &band, &(0..n));
        let rows_tile = ViewMut::new(&mut d[band.start * n..], b, n, n);
        product(middle, View::dense(&rows, b, n), rows_tile);
        let cols = copy(&d, n, &(0..n), &band);
        product(View::dense(&cols, n, b), middle, ViewMut::dense(&mut d, n, n).tile(0, band.start, n, b));
        let (rows, cols) = (copy(&d, n, &band, &(0..n)), copy(&d, n, &(0..n), &band));
        product(View::dense(&cols, n, b), View::dense(&rows, b, n), ViewMut::dense(&mut d, n, n));
        check_cycles::<T, MIN>(&d, n)?;
    }
    Ok(d)
}

/// 0..n, [`BAND`] at a time.
pub(super) fn bands(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(BAND).map(move |start| start..(start + BAND).min(n))
}

/// Lets every vertex reach itself by the empty path.
pub(super) fn start<T: Tropical, const MIN: bool>(d: &mut [T], n: usize) -> Result<()> {
    d.iter_mut().step_by(n + 1).for_each(|x| *x = x.over::<MIN>(T::NOUGHT));
    check_cycles::<T, MIN>(d, n)
}

/// A path from a vertex to itself that beats the empty one can be gone round for ever.
pub(super) fn check_cycles<T: Tropical, const MIN: bool>(d: &[T], n: usize) -> Result<()> {
    match d.iter().step_by(n + 1).position(|&x| if MIN { x < T::NOUGHT } else { x > T::NOUGHT }) {
        None => Ok(()),
        Some(i) => {
            let (sign, kind) = if MIN { ("negative", "shortest") } else { ("positive", "longest") };
            Err(Error::infeasible(
                format!("a cycle of {sign} weight passes through vertex {i}: no path is {kind}"),
                format!("remove the {sign} cycles"),
            ))
        }
    }
}

/// A tile of an n x n matrix, row by row.
pub(super) fn copy<T: Copy>(d: &[T], n: usize, rows: &Range<usize>, cols: &Range<usize>) -> Vec<T> {
    rows.clone().flat_map(|i| &d[i * n..][cols.clone()]).copied().collect()
}

/// Floyd and Warshall's three loops.
fn pass_through<T: Tropical, const MIN: bool>(d: &mut [T], n: usize) {
    for k in 0..n {
        let through = d[k * n..][..n].to_vec();
        for row in d.chunks_exact_mut(n) {
            let first = row[k];
            for (x, &second) in row.iter_mut().zip(&through) {
                *x = first.times::<MIN>(second).over::<MIN>(*x);
            }
        }
    }
}

impl BitMatrix {
    /// The reflexive and transitive closure: which vertices can be reached from which. At most log2(n) products.
    ///
    /// # Panics
    /// If the matrix is not square.
    pub fn closure(&self) -> Self {
        assert_eq!(self.rows(), self.cols(), "only square matrices have closures");
        let mut reached = self.clone();
        (0..self.rows()).for_each(|i| reached.set(i, i));
        loop {
            let mut further = Self::zeros(self.rows(), self.cols());
            further.or_product(&reached, &reached);
            if further == reached {
                return reached;
            }
            reached = further;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A matrix of n x n that is mostly absent, from a seed.
    fn sample<const MIN: bool>(n: usize, seed: u64, least: i64) -> Vec<i64> {
        let mut state = seed;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let sign = if MIN { 1 } else { -1 };
        (0..n * n)
            .map(|_| {
                if next(8) == 0 {
                    sign * (next(90) as i64 + least)
                } else {
                    if MIN { i64::MAX } else { i64::MIN }
                }
            })
            .collect()
    }

    fn floyd_warshall<const MIN: bool>(a: &[i64], n: usize) -> Vec<i64> {
        let absent = if MIN { i64::MAX } else { i64::MIN };
        let mut d = a.to_vec();
        (0..n).for_each(|i| {
            let x = &mut d[i * n + i];
            *x = if MIN { 0.min(*x) } else { 0.max(*x) };
        });
        for (k, i, j) in (0..n * n * n).map(|at| (at / n / n, at / n % n, at % n)) {
            let (x, y) = (d[i * n + k], d[k * n + j]);
            if x != absent && y != absent {
                let z = &mut d[i * n + j];
                let sum = x.saturating_add(y);
                *z = if MIN { sum.min(*z) } else { sum.max(*z) };
            }
        }
        d
    }

    #[test]
    fn bands_of_vertices_equal_one_vertex_at_a_time() {
        for n in [0, 1, 2, 63, 64, 65, 131, 200] {
            let a = sample::<true>(n, n as u64, 1);
            let found = closure(View::dense(&a, n, n), Semiring::MinPlus).unwrap();
            assert_eq!(found, floyd_warshall::<true>(&a, n), "min-plus, {n}");
            let a = sample::<false>(n, n as u64, 1);
            let found = closure(View::dense(&a, n, n), Semiring::MaxPlus).unwrap();
            assert_eq!(found, floyd_warshall::<false>(&a, n), "max-plus, {n}");
            let reached: Vec<i64> = found.iter().map(|&x| i64::from(x != i64::MIN)).collect();
            let bits: Vec<i64> = a.iter().map(|&x| i64::from(x != i64::MIN)).collect();
            assert_eq!(closure(View::dense(&bits, n, n), Semiring::OrAnd).unwrap(), reached, "or-and, {n}");
        }
    }

    #[test]
    fn improving_cycles_are_named() {
        let far = f64::INFINITY;
        let a = [far, 1.0, far, far, far, -3.0, 1.0, far, far];
        let message = closure(View::dense(&a, 3, 3), Semiring::MinPlus).unwrap_err().to_string();
        assert!(message.starts_with("a cycle of negative weight passes through vertex 0"), "{message}");
        let error = closure(View::dense(&a.map(|x| -x), 3, 3), Semiring::MaxPlus).unwrap_err();
        assert!(error.to_string().contains("a cycle of positive weight"), "{error}");
        assert_eq!(error.exit_code(), 1);
        assert_eq!(closure(View::dense(&a, 3, 3), Semiring::PlusTimes).unwrap_err().exit_code(), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn refuses_exactly_what_has_an_improving_cycle(n in 1usize..90, seed in 0u64..1 << 40, least in -4i64..1) {
            let a = sample::<true>(n, seed, least);
            let expected = floyd_warshall::<true>(&a, n);
            let sound = (0..n).all(|i| expected[i * n + i] >= 0);
            match closure(View::dense(&a, n, n), Semiring::MinPlus) {
                Ok(found) => prop_assert_eq!(found, expected),
                Err(_) => prop_assert!(!sound),
            }
        }
    }
}

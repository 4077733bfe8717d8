//! Shortest paths with the predecessor matrix.

use super::closure::{bands, check_cycles, copy, start};
use super::power::checked;
use super::{Semiring, Tropical, View, ViewMut, min_plus};
use crate::error::Result;
use std::ops::Range;

/// In a predecessor matrix: the pair has no path, or only the empty one.
pub const NO_PREDECESSOR: u32 = u32::MAX;

/// The shortest paths between all pairs of n vertices.
#[derive(Debug, Clone, PartialEq)]
pub struct Paths<T> {
    /// Length of the shortest path from i to j, at `i * n + j`; the zero of min-plus where there is none.
    pub distances: Vec<T>,
    /// The vertex before j on it, at `i * n + j`, or [`NO_PREDECESSOR`].
    pub predecessors: Vec<u32>,
    n: usize,
}

impl<T: Tropical> Paths<T> {
    /// The vertices of the shortest path from `from` to `to`, both included; nothing if there is none.
    pub fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut path = vec![to];
        let mut at = to;
        // At most n steps: rounding may close a chain round a cycle of length 0.
        while at != from && path.len() <= self.n {
            at = usize::try_from(self.predecessors[from * self.n + at]).ok().filter(|&p| p < self.n)?;
            path.push(at);
        }
        path.reverse();
        (at == from).then_some(path)
    }
}

/// The closure over min-plus together with the predecessor of each pair.
///
/// Distances come at the speed of [`min_plus`]; where a band of 64 vertices has shortened a pair, the vertex that
/// did it is found again among the 64: O(n^3) in all, with few pairs shortened more than a few times. Among
/// equally short paths the first found stands, so the same matrix gives the same paths.
///
/// Source: Floyd 1962 (Algorithm 97); Cormen, Leiserson, Rivest and Stein, section 25.2.
///
/// # Errors
/// As for [`closure`](super::closure()) over min-plus.
///
/// # Example
/// ```
/// use apportion::kernels::{View, shortest_paths};
/// let far = f64::INFINITY;
/// let a = [0.0, 4.0, 99.0, far, 0.0, 5.0, 1.0, far, 0.0];
/// let paths = shortest_paths(View::dense(&a, 3, 3)).unwrap();
/// assert_eq!(paths.distances[2], 9.0);
/// assert_eq!(paths.path(0, 2).unwrap(), [0, 1, 2]);
/// ```
pub fn shortest_paths<T: Tropical>(a: View<T>) -> Result<Paths<T>> {
    let n = a.rows();
    let mut distances = checked(a, Semiring::MinPlus)?;
    start::<T, true>(&mut distances, n)?;
    let predecessors =
        (0..n * n)
            .map(|at| {
                if at / n == at % n || distances[at] == T::HIGHEST { NO_PREDECESSOR } else { (at / n) as u32 }
            })
            .collect();
    let mut paths = Paths { distances, predecessors, n };
    for band in bands(n) {
        paths.pass_within(&band);
        let middle = paths.rows_of(&band, &band);
        for rest in [0..band.start, band.end..n] {
            paths.shorten(&rest, &band, &band, &middle);
        }
        let rows = paths.rows_of(&band, &(0..n));
        for rest in [0..band.start, band.end..n] {
            paths.shorten(&rest, &band, &(0..n), &rows);
        }
        check_cycles::<T, true>(&paths.distances, n)?;
    }
    Ok(paths)
}

/// Rows of both matrices, cut to some columns.
type Rows<T> = (Vec<T>, Vec<u32>);

impl<T: Tropical> Paths<T> {
    fn rows_of(&self, rows: &Range<usize>, cols: &Range<usize>) -> Rows<T> {
        (copy(&self.distances, self.n, rows, cols), copy(&self.predecessors, self.n, rows, cols))
    }

    /// Shortens paths from the band's vertices by the band's vertices, one at a time.
    fn pass_within(&mut self, band: &Range<usize>) {
        let n = self.n;
        for k in band.clone() {
            let (seconds, lasts) = self.rows_of(&(k..k + 1), &(0..n));
            for i in band.clone().filter(|&i| i != k) {
                let first = self.distances[i * n + k];
                let known = self.distances[i * n..][..n].iter_mut().zip(&mut self.predecessors[i * n..][..n]);
                for ((x, last), (&second, &new)) in known.zip(seconds.iter().zip(&lasts)) {
                    let sum = first.times::<true>(second);
                    if sum < *x {
                        (*x, *last) = (sum, new);
                    }
                }
            }
        }
    }

    /// Shortens the pairs `from` x `to` by way of the band, whose own rows, cut to `to`, are `seconds`.
    fn shorten(
        &mut self,
        from: &Range<usize>,
        band: &Range<usize>,
        to: &Range<usize>,
        (seconds, lasts): &Rows<T>,
    ) {
        let (n, b, width) = (self.n, band.len(), to.len());
        let firsts = copy(&self.distances, n, from, band);
        let before = copy(&self.distances, n, from, to);
        min_plus(
            View::dense(&firsts, from.len(), b),
            View::dense(seconds, b, width),
            ViewMut::dense(&mut self.distances, n, n).tile(from.start, to.start, from.len(), width),
        );
        for ((i, firsts), before) in from.clone().zip(firsts.chunks_exact(b)).zip(before.chunks_exact(width))
        {
            for (j, before) in before.iter().enumerate() {
                let at = i * n + to.start + j;
                let now = self.distances[at];
                if now < *before {
                    let via = (0..b).find(|&p| firsts[p].times::<true>(seconds[p * width + j]) == now);
                    self.predecessors[at] =
                        lasts[via.expect("the product took one of these sums") * width + j];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::kernels::closure;

    /// Random sparse edges; potentials make some negative but no cycle so, and many cycles 0.
    fn sample(n: usize, seed: u64, longest: u64) -> Vec<i64> {
        let mut state = seed;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % below) as i64
        };
        let heights: Vec<i64> = (0..n).map(|_| next(100)).collect();
        let edge = |at: usize, length: i64| length + heights[at / n] - heights[at % n];
        (0..n * n).map(|at| if next(7) == 0 { edge(at, next(longest)) } else { i64::MAX }).collect()
    }

    #[test]
    fn every_path_is_as_long_as_its_distance_says() {
        for (n, longest) in [(0, 1), (1, 1), (2, 5), (40, 1), (40, 3), (64, 50), (131, 2), (131, 900)] {
            let a = sample(n, n as u64 + longest, longest);
            let paths = shortest_paths(View::dense(&a, n, n)).unwrap();
            assert_eq!(paths.distances, closure(View::dense(&a, n, n), Semiring::MinPlus).unwrap());
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                match paths.path(i, j) {
                    None => assert_eq!(paths.distances[i * n + j], i64::MAX),
                    Some(path) => {
                        assert_eq!((path[0], path[path.len() - 1]), (i, j));
                        let length: i64 = path.windows(2).map(|edge| a[edge[0] * n + edge[1]]).sum();
                        assert_eq!(length, paths.distances[i * n + j], "{path:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn negative_cycles_are_refused() {
        let far = f32::INFINITY;
        let a = [far, 1.0, -2.0, far];
        let error = shortest_paths(View::dense(&a, 2, 2)).unwrap_err();
        assert!(error.to_string().contains("a cycle of negative weight"), "{error}");
        assert!(shortest_paths(View::dense(&[-0.5], 1, 1)).is_err());
        assert!(shortest_paths(View::dense(&[f64::NAN], 1, 1)).is_err());
    }

    #[test]
    fn a_vertex_without_edges_has_no_paths() {
        let paths = shortest_paths(View::dense(&[i32::MAX; 4], 2, 2)).unwrap();
        assert_eq!((paths.path(0, 0), paths.path(0, 1)), (Some(vec![0]), None));
        assert_eq!(paths.predecessors, [NO_PREDECESSOR; 4]);
    }
}

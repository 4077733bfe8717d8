//! Alternating optima, and the search that sorts the processors by the areas: for many processors.

use super::{Arrangement, Mesh, classes};

/// Maximum number of rounds of sorting and solving, up to [`Depth::of`] processors.
const MOST_ROUNDS: usize = 50;

/// Number of lines of each direction that the inner solver starts from, up to [`Depth::of`] processors.
const MOST_STARTS: usize = 16;

/// How much is tried: beyond this number of processors, rounds and starts become fewer in inverse proportion,
/// so that the work of the whole search stays at that of this number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depth(usize);

impl Depth {
    /// Of a thorough search, or of a quick one.
    pub(crate) fn of(quick: bool) -> Self {
        Self(if quick { 64 } else { 4_096 })
    }

    /// `most`, or fewer for many processors; at least `least`.
    fn affords(self, most: usize, least: usize, processors: usize) -> usize {
        (most * self.0 / processors.max(self.0)).max(least)
    }
}

/// The best of several starts, each improved by sorting the processors by the areas until the arrangement no
/// longer changes. Starts: the given order, the sorted order along rows, along columns, and along diagonals.
pub(super) fn best(
    speeds: &[f64],
    given: &[usize],
    sorted: &[usize],
    Mesh { rows, cols }: Mesh,
    equal: f64,
    depth: Depth,
) -> Arrangement {
    let along = |order: Vec<usize>| {
        let mut cells = vec![0; order.len()];
        order.into_iter().zip(sorted).for_each(|(at, &p)| cells[at] = p);
        cells
    };
    let by_columns = (0..cols).flat_map(|j| (0..rows).map(move |i| i * cols + j)).collect();
    let mut by_diagonals: Vec<usize> = (0..rows * cols).collect();
    by_diagonals.sort_by_key(|at| (at / cols + at % cols, *at));
    let starts = [given.to_vec(), sorted.to_vec(), along(by_columns), along(by_diagonals)];
    let mut best: Option<Arrangement> = None;
    for start in starts {
        let found = improved(speeds, start, sorted, cols, equal, depth);
        if best.as_ref().is_none_or(|b| found.time < b.time * (1.0 - equal)) {
            best = Some(found);
        }
    }
    best.expect("there are starts")
}

/// The best of the rounds from one arrangement.
fn improved(
    speeds: &[f64],
    mut cells: Vec<usize>,
    sorted: &[usize],
    cols: usize,
    equal: f64,
    depth: Depth,
) -> Arrangement {
    let mut best: Option<Arrangement> = None;
    for _ in 0..depth.affords(MOST_ROUNDS, 2, cells.len()) {
        let found = arrangement_of(speeds, cells, cols, depth);
        let area = |at: usize| found.heights[at / cols] * found.widths[at % cols];
        let mut by_area: Vec<usize> = (0..found.cells.len()).collect();
        by_area.sort_by(|&a, &b| area(b).total_cmp(&area(a)).then(a.cmp(&b)));
        // Cells of equal area keep the order of their processors, so that a fixed point is recognised.
        let mut place = vec![0; speeds.len()];
        sorted.iter().enumerate().for_each(|(i, &p)| place[p] = i);
        let by_area = classes(by_area, area, equal, |&at| place[found.cells[at]]);
        let mut next = found.cells.clone();
        by_area.iter().zip(sorted).for_each(|(&at, &p)| next[at] = p);
        let same = next == found.cells;
        if best.as_ref().is_none_or(|b| found.time < b.time * (1.0 - equal)) {
            best = Some(found);
        }
        if same {
            break;
        }
        cells = next;
    }
    best.expect("at least one round")
}

/// An arrangement with the heights and widths of [`fit`].
pub(super) fn arrangement_of(speeds: &[f64], cells: Vec<usize>, cols: usize, depth: Depth) -> Arrangement {
    let (time, heights, widths) = fit(cells.len() / cols, cols, |i, j| speeds[cells[i * cols + j]], depth);
    Arrangement { time, cells, heights, widths }
}

/// Heights and widths of sum 1 that keep the largest h_i w_j / s_ij small, and that value.
///
/// For given widths the best heights are in proportion to min_j s_ij / w_j, and vice versa: the two optima
/// alternate until nothing improves. They start from the sums (exact for rank one) and with one line's cells
/// all tight, for up to [`MOST_STARTS`] lines of each direction (exact for two rows or two columns).
pub(super) fn fit(
    rows: usize,
    cols: usize,
    speed: impl Fn(usize, usize) -> f64,
    depth: Depth,
) -> (f64, Vec<f64>, Vec<f64>) {
    let best_heights = |widths: &[f64]| -> Vec<f64> {
        (0..rows).map(|i| (0..cols).map(|j| speed(i, j) / widths[j]).fold(f64::INFINITY, f64::min)).collect()
    };
    let best_widths = |heights: &[f64]| -> Vec<f64> {
        (0..cols).map(|j| (0..rows).map(|i| speed(i, j) / heights[i]).fold(f64::INFINITY, f64::min)).collect()
    };
    let sums = (0..cols).map(|j| (0..rows).map(|i| speed(i, j)).sum()).collect();
    let most = depth.affords(MOST_STARTS, 1, rows * cols);
    let tight_rows = spread(rows, most).map(|i| (0..cols).map(|j| speed(i, j)).collect());
    let tight_cols =
        spread(cols, most).map(|j| best_widths(&(0..rows).map(|i| speed(i, j)).collect::<Vec<_>>()));
    let starts: Vec<Vec<f64>> = std::iter::once(sums).chain(tight_rows).chain(tight_cols).collect();
    let mut best = (f64::INFINITY, Vec::new(), Vec::new());
    for mut widths in starts {
        normalise(&mut widths);
        let mut least = f64::INFINITY;
        loop {
            let mut heights = best_heights(&widths);
            normalise(&mut heights);
            widths = best_widths(&heights);
            let time = 1.0 / normalise(&mut widths);
            if time < best.0 {
                best = (time, heights, widths.clone());
            }
            if time >= least * (1.0 - 1e-9) {
                break;
            }
            least = time;
        }
    }
    best
}

/// At most `most` of 0..n, evenly spaced.
fn spread(n: usize, most: usize) -> impl Iterator<Item = usize> {
    let count = n.min(most);
    (0..count).map(move |i| i * n / count)
}

/// Scales to sum 1 and returns the previous sum.
fn normalise(values: &mut [f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    values.iter_mut().for_each(|v| *v /= sum);
    sum
}
